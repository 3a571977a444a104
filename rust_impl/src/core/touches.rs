//! The touch log: how matches refresh pages without waiting for one another.
//!
//! A match holds the tree's lock for reading, so it cannot write its mark. It notes (run, depth, tick) here instead, and
//! whoever has the lock for writing next writes the marks before it does anything else. Runs cannot change in between.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::marks::Note;
use super::tree::Tree;
use super::{Failure, NIL, NoMemory};

const CAPACITY: usize = 64;

#[derive(Default)]
struct Touch {
    run: AtomicU32,
    depth: AtomicUsize,
    tick: AtomicU64,
}

/// Orderings are relaxed throughout: the lock around the tree orders notes before the draining.
pub struct TouchLog {
    /// Notes claimed; more than the capacity if some found no room.
    claimed: AtomicUsize,
    touches: [Touch; CAPACITY],
}

impl TouchLog {
    pub fn new() -> Self {
        Self { claimed: AtomicUsize::new(0), touches: std::array::from_fn(|_| Touch::default()) }
    }

    /// Notes that a match ended at that page, and takes its tick from `clock`.
    pub fn note(&self, run: u32, depth: usize, clock: &AtomicU64) -> Result<(), Failure> {
        if self.claimed.load(Ordering::Relaxed) >= CAPACITY {
            return Err(Failure::LogFull);
        }
        let place = self.claimed.fetch_add(1, Ordering::Relaxed);
        let touch = self.touches.get(place).ok_or(Failure::LogFull)?;
        let tick = clock.fetch_add(1, Ordering::Relaxed) + 1;
        touch.run.store(run, Ordering::Relaxed);
        touch.depth.store(depth, Ordering::Relaxed);
        touch.tick.store(tick, Ordering::Relaxed);
        Ok(())
    }

    fn len(&self) -> usize {
        self.claimed.load(Ordering::Relaxed).min(CAPACITY)
    }
}

impl Tree {
    /// Writes the marks of the matches since the last time. The order does not matter: a mark keeps the largest tick.
    pub fn drain_touches(&mut self) -> Result<(), NoMemory> {
        let count = self.touches.len();
        if count == 0 {
            return Ok(());
        }
        self.reserve(count)?;
        let mut pruned = [NIL; CAPACITY];
        for (place, pruned) in pruned.iter_mut().enumerate().take(count) {
            let touch = &mut self.touches.touches[place];
            let (mut run, depth, last) = (*touch.run.get_mut(), *touch.depth.get_mut(), *touch.tick.get_mut());
            // A run with too many marks was split meanwhile, and this page went to its upper part.
            while depth <= self.runs[run].start {
                run = self.runs[run].parent;
            }
            if self.write_at(run, depth, Note { last, priority: i64::MIN, hits: 0 }) {
                *pruned = run;
            }
        }
        *self.touches.claimed.get_mut() = 0;
        // Runs that were split for their many marks become one again. Not before all notes are written: they name runs.
        for run in pruned {
            let absorbed = run == NIL || self.runs[run].space == NIL;
            if !absorbed {
                self.merge_upwards(run);
            }
        }
        self.compact_some();
        Ok(())
    }
}

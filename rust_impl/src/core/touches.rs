//! The touch log: how matches leave their traces without waiting for one another.
//!
//! A match holds the tree's lock for reading, so it cannot write. It notes here what it found instead, and whoever has
//! the lock for writing next writes the marks and the statistics before it does anything else. Runs cannot change in
//! between. The place in the log also is the match's tick, so that a match costs one atomic addition.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::marks::Note;
use super::tree::{Lookups, Tree};
use super::{Failure, NIL, NoMemory};

const CAPACITY: usize = 64;

#[derive(Default)]
struct Touch {
    /// The page where it ended: NIL for a root.
    run: AtomicU32,
    depth: AtomicU32,
    given: AtomicU64,
    hit: AtomicU64,
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

    /// Notes that a match ended at that page, with `given` units of which `hit` were found.
    #[inline]
    pub fn note(&self, run: u32, depth: usize, given: usize, hit: usize) -> Result<(), Failure> {
        // The look before saves a full log from counting on and on.
        if self.claimed.load(Ordering::Relaxed) >= CAPACITY {
            return Err(Failure::LogFull);
        }
        let place = self.claimed.fetch_add(1, Ordering::Relaxed);
        let touch = self.touches.get(place).ok_or(Failure::LogFull)?;
        touch.run.store(run, Ordering::Relaxed);
        touch.depth.store(depth as u32, Ordering::Relaxed);
        touch.given.store(given as u64, Ordering::Relaxed);
        touch.hit.store(hit as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Matches since the last draining: so many ticks have passed.
    pub fn len(&self) -> usize {
        self.claimed.load(Ordering::Relaxed).min(CAPACITY)
    }

    /// What they add to the statistics.
    pub fn lookups(&self) -> Lookups {
        let mut lookups = Lookups::default();
        for touch in &self.touches[..self.len()] {
            lookups.count += 1;
            lookups.given += touch.given.load(Ordering::Relaxed);
            lookups.hit += touch.hit.load(Ordering::Relaxed);
        }
        lookups
    }
}

impl Tree {
    /// Writes the marks and the statistics of the matches since the last time.
    #[inline]
    pub fn drain_touches(&mut self) -> Result<(), NoMemory> {
        if self.touches.len() == 0 { Ok(()) } else { self.drain() }
    }

    #[inline(never)]
    fn drain(&mut self) -> Result<(), NoMemory> {
        let count = self.touches.len();
        self.reserve(count)?;
        let mut pruned = [NIL; CAPACITY];
        for (place, pruned) in pruned.iter_mut().enumerate().take(count) {
            let touch = &mut self.touches.touches[place];
            let (mut run, depth) = (*touch.run.get_mut(), *touch.depth.get_mut() as usize);
            if run == NIL {
                continue;
            }
            // A run with too many marks was split meanwhile, and this page went to its upper part.
            while depth <= self.runs[run].start() {
                run = self.runs[run].parent;
            }
            let last = self.clock + place as u64 + 1;
            if self.write_at(run, depth, Note { last, priority: i64::MIN, hits: 0 }) {
                *pruned = run;
            }
        }
        self.lookups += self.touches.lookups();
        self.clock += count as u64;
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

//! The touch log: how matches leave their traces without waiting for one another.
//!
//! A match holds the tree's lock for reading, so it cannot write. It notes here what it found instead, and whoever has
//! the lock for writing next writes the marks and the statistics before it does anything else. Runs cannot change in
//! between. The place in the log also is the match's tick, so that a match costs one atomic addition.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::marks;
use super::tree::{Lookups, Tree};
use super::{Failure, NIL, NoMemory};

const CAPACITY: usize = 64;

/// Notes that are written without looking ahead.
const FEW: usize = 8;

/// A match: the page where it ended (run NIL: a root, or nothing to write), the units given and those found.
#[derive(Clone, Copy)]
pub struct Touch {
    pub run: u32,
    pub depth: usize,
    pub given: usize,
    pub hit: usize,
}

#[derive(Default)]
struct Note {
    run: AtomicU32,
    depth: AtomicU32,
    given: AtomicU64,
    hit: AtomicU64,
}

/// Orderings are relaxed throughout: the lock around the tree orders notes before the draining.
pub struct TouchLog {
    /// Notes claimed; more than the capacity if some found no room.
    claimed: AtomicUsize,
    notes: [Note; CAPACITY],
}

impl TouchLog {
    pub fn new() -> Self {
        Self { claimed: AtomicUsize::new(0), notes: std::array::from_fn(|_| Note::default()) }
    }

    /// Notes a match, beside others who do the same.
    pub fn note(&self, touch: Touch) -> Result<(), Failure> {
        // The look before saves a full log from counting on and on.
        if self.claimed.load(Ordering::Relaxed) >= CAPACITY {
            return Err(Failure::LogFull);
        }
        let place = self.claimed.fetch_add(1, Ordering::Relaxed);
        if self.write(place, touch) { Ok(()) } else { Err(Failure::LogFull) }
    }

    /// The same for a caller who has the tree to itself. False if the log is full.
    #[inline]
    pub fn note_alone(&mut self, touch: Touch) -> bool {
        let place = *self.claimed.get_mut();
        let noted = self.write(place, touch);
        *self.claimed.get_mut() += usize::from(noted);
        noted
    }

    #[inline]
    fn write(&self, place: usize, touch: Touch) -> bool {
        let Some(note) = self.notes.get(place) else { return false };
        note.run.store(touch.run, Ordering::Relaxed);
        note.depth.store(touch.depth as u32, Ordering::Relaxed);
        note.given.store(touch.given as u64, Ordering::Relaxed);
        note.hit.store(touch.hit as u64, Ordering::Relaxed);
        true
    }

    fn page(&self, place: usize) -> (u32, usize) {
        let note = &self.notes[place];
        (note.run.load(Ordering::Relaxed), note.depth.load(Ordering::Relaxed) as usize)
    }

    /// Matches since the last draining: so many ticks have passed.
    pub fn len(&self) -> usize {
        self.claimed.load(Ordering::Relaxed).min(CAPACITY)
    }

    /// What they add to the statistics.
    pub fn lookups(&self) -> Lookups {
        let mut lookups = Lookups::default();
        for note in &self.notes[..self.len()] {
            lookups.count += 1;
            lookups.given += note.given.load(Ordering::Relaxed);
            lookups.hit += note.hit.load(Ordering::Relaxed);
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
        if count > FEW {
            let touched = (0..count).map(|place| self.touches.page(place).0);
            self.prefetch_candidates(touched.filter(|&run| run != NIL));
        }
        let mut pruned = [NIL; CAPACITY];
        for (place, pruned) in pruned.iter_mut().enumerate().take(count) {
            let (mut run, depth) = self.touches.page(place);
            // Of two notes about one page the later one says all.
            if run == NIL || (place + 1 < count && self.touches.page(place + 1) == (run, depth)) {
                continue;
            }
            // A run with too many marks was split meanwhile, and this page went to its upper part.
            while depth <= self.runs[run].start() {
                run = self.runs[run].parent;
            }
            let last = self.clock + place as u64 + 1;
            if self.write_at(run, depth, marks::Note { last, priority: i64::MIN, hits: 0 }) {
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

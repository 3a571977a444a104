//! The touch log: how matches leave their traces without waiting for one another.
//!
//! A match holds the tree's lock for reading, so it cannot write. It notes here what it found instead, and whoever has
//! the lock for writing next writes the marks before it does anything else. Runs cannot change in between. The place in
//! the log also is the match's tick.
//!
//! Who has the tree to itself notes in an array. Those who look up beside others append to a list: a batch all its
//! notes at once, so that a lock held for some nanoseconds serves many keys.

use std::sync::PoisonError;

use super::marks;
use super::tree::{Lookups, Tree};
use super::{Failure, NIL, NoMemory};
use crate::sync::Mutex;

/// Notes of callers who had the tree to themselves.
const CAPACITY: usize = if cfg!(feature = "models") { 2 } else { 64 };

/// Notes of the others, at most, before one of them must have the tree to itself.
const MOST_SHARED: usize = if cfg!(feature = "models") { 2 } else { 1 << 14 };

/// Notes that are written together: what they need is asked for first.
const BLOCK: usize = 64;

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

impl Touch {
    /// Nothing to write.
    pub const fn nowhere() -> Self {
        Self { run: NIL, depth: 0, given: 0, hit: 0 }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Note {
    run: u32,
    depth: u32,
}

/// Of those beside others, in the order of their ticks; and what they add to the statistics.
#[derive(Default)]
struct Shared {
    notes: Vec<Note>,
    lookups: Lookups,
}

impl Shared {
    fn note_all(&mut self, touches: &[Touch]) -> Result<(), NoMemory> {
        self.notes.try_reserve(touches.len())?;
        for &touch in touches {
            self.notes.push(touch.into());
            self.lookups += touch.into();
        }
        Ok(())
    }
}

impl From<Touch> for Note {
    fn from(touch: Touch) -> Self {
        Note { run: touch.run, depth: touch.depth as u32 }
    }
}

impl From<Touch> for Lookups {
    fn from(touch: Touch) -> Self {
        Lookups { count: 1, given: touch.given as u64, hit: touch.hit as u64 }
    }
}

pub struct TouchLog {
    alone: [Note; CAPACITY],
    alone_count: usize,
    /// They come after those of `alone`.
    shared: Mutex<Shared>,
}

impl TouchLog {
    pub fn new() -> Self {
        Self { alone: [Note::default(); CAPACITY], alone_count: 0, shared: Mutex::default() }
    }

    fn with_shared<T>(&self, work: impl FnOnce(&mut Shared) -> T) -> T {
        work(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn shared(&mut self) -> &mut Shared {
        self.shared.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a match, beside others who do the same.
    pub fn note(&self, touch: Touch) -> Result<(), Failure> {
        self.with_shared(|shared| {
            if shared.notes.len() >= MOST_SHARED {
                return Err(Failure::LogFull);
            }
            Ok(shared.note_all(&[touch])?)
        })
    }

    /// The same for all of a batch, one tick after the other. Whether it is time that somebody writes them.
    pub fn note_all(&self, touches: &[Touch]) -> Result<bool, NoMemory> {
        self.with_shared(|shared| {
            shared.note_all(touches)?;
            Ok(shared.notes.len() >= MOST_SHARED)
        })
    }

    /// For a caller who has the tree to itself. False if the log must be emptied first.
    #[inline]
    pub fn note_alone(&mut self, touch: Touch) -> bool {
        let place = self.alone_count;
        if place == CAPACITY || !self.shared().notes.is_empty() {
            return false;
        }
        self.alone[place] = touch.into();
        self.alone_count = place + 1;
        true
    }

    #[inline]
    fn is_empty(&mut self) -> bool {
        self.alone_count == 0 && self.shared().notes.is_empty()
    }

    /// Matches since the last draining: so many ticks have passed.
    pub fn len(&self) -> usize {
        self.alone_count + self.with_shared(|shared| shared.notes.len())
    }

    pub fn bytes(&self) -> usize {
        self.with_shared(|shared| shared.notes.capacity() * size_of::<Note>())
    }

    /// What those beside others add to the statistics.
    pub fn lookups(&self) -> Lookups {
        self.with_shared(|shared| shared.lookups)
    }
}

impl Tree {
    /// Writes the marks and the statistics of the matches since the last time.
    #[inline]
    pub fn drain_touches(&mut self) -> Result<(), NoMemory> {
        if self.touches.is_empty() { Ok(()) } else { self.drain() }
    }

    #[inline(never)]
    fn drain(&mut self) -> Result<(), NoMemory> {
        let (mut alone, count) = (self.touches.alone, self.touches.alone_count);
        let alone = &mut alone[..count];
        self.write_notes(alone)?;
        self.touches.alone_count = 0;
        let mut shared = std::mem::take(self.touches.shared());
        let mut written = 0;
        for block in shared.notes.chunks_mut(BLOCK) {
            if let Err(no_memory) = self.write_notes(block) {
                // The others wait in their order. They name runs, so nothing may be merged yet.
                shared.notes.drain(..written);
                *self.touches.shared() = shared;
                return Err(no_memory);
            }
            written += block.len();
        }
        self.lookups += shared.lookups;
        // Runs that were split for their many marks become one again. Not before all notes are written: they name runs.
        for block in std::iter::once(alone).chain(shared.notes.chunks_mut(BLOCK)) {
            for note in block.iter().filter(|note| note.run != NIL) {
                if self.runs[note.run].has_pages() {
                    self.merge_upwards(note.run);
                }
            }
            self.compact_some();
        }
        // The next batch finds a list that is long enough, unless this one is too long to be kept.
        if shared.notes.capacity() <= 2 * BLOCK {
            shared.notes.clear();
            self.touches.shared().notes = shared.notes;
        }
        Ok(())
    }

    /// Writes these marks; each takes a tick. Of the notes those are left, named by their run, whose marks made others
    /// dispensable. After an error nothing has changed.
    fn write_notes(&mut self, notes: &mut [Note]) -> Result<(), NoMemory> {
        self.reserve(notes.len())?;
        if notes.len() > FEW {
            self.prefetch_touched(notes.iter().map(|note| note.run).filter(|&run| run != NIL));
        }
        for place in 0..notes.len() {
            self.clock += 1;
            let (mut run, depth) = (notes[place].run, notes[place].depth as usize);
            // Of two notes about one page the later one says all.
            if run == NIL || notes.get(place + 1) == Some(&notes[place]) {
                notes[place].run = NIL;
                continue;
            }
            // A run with too many marks was split meanwhile, and this page went to its upper part.
            while depth <= self.runs[run].start() {
                run = self.runs[run].parent;
            }
            let pruned = self.write_at(run, depth, marks::Note { last: self.clock, priority: i64::MIN, hits: 0 });
            notes[place].run = if pruned { run } else { NIL };
        }
        Ok(())
    }
}

//! The whole tree and what it counts.

use std::collections::VecDeque;
use std::ops::AddAssign;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::births::Birth;
use super::children::{ChildTable, Seed};
use super::config::Config;
use super::events::Event;
use super::hashing::{Digest, Digests};
use super::heap::Heap;
use super::log::{Kind, note};
use super::marks::{Mark, Weight};
use super::node::{Detail, Run};
use super::slab::{Column, Slab};
use super::spaces::{Namespace, Space};
use super::span::Spans;
use super::touches::TouchLog;
use super::{NIL, NoMemory};

/// Methods that change anything start with `drain_touches`. Those on `&self` may run at the same time as each other.
pub struct Tree {
    pub(super) config: Config,
    pub(super) seed: Seed,
    pub(super) runs: Slab<Run>,
    pub(super) details: Column<Detail>,
    pub(super) marks: Slab<Mark>,
    /// Of the marks, where the policy asks for them.
    pub(super) weights: Column<Weight>,
    pub(super) births: Slab<Birth>,
    pub(super) spans: Spans,
    pub(super) children: ChildTable,

    pub(super) spaces: Slab<Space>,
    pub(super) default_space: u32,
    pub(super) named_spaces: HashMap<Arc<Namespace>, u32, RandomState>,
    /// The spaces with candidates, by their smallest rank.
    pub(super) ranked_spaces: Heap,
    /// Where each space stands in `ranked_spaces`.
    pub(super) space_positions: Column<u32>,
    /// Bytes of the heaps of all spaces.
    pub(super) heap_bytes: usize,

    pub(super) digests: Slab<Digests>,
    pub(super) digest_count: usize,
    pub(super) events: VecDeque<Event>,

    pub(super) touches: TouchLog,
    /// Ticks without those of the touch log.
    pub(super) clock: u64,
    /// How often the cache was reset: tells the roots before from those after.
    pub(super) epoch: u64,

    pub(super) total_units: usize,
    pub(super) protected_units: usize,
    /// Without those of the touch log that were made beside others.
    pub(super) lookups: Lookups,
    pub(super) inserts: u64,
    pub(super) inserted_units: u64,
    pub(super) evicted_units: u64,
}

/// What matches add to the statistics: how many there were, the units that they were given and found.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lookups {
    pub count: u64,
    pub given: u64,
    pub hit: u64,
}

impl AddAssign for Lookups {
    #[inline]
    fn add_assign(&mut self, more: Self) {
        self.count += more.count;
        self.given += more.given;
        self.hit += more.hit;
    }
}

/// Counts since the start or the last reset.
#[derive(Debug, Clone, Copy)]
pub struct Stats {
    pub lookups: u64,
    pub lookup_tokens: u64,
    pub hit_tokens: u64,
    pub inserts: u64,
    pub inserted_tokens: u64,
    pub evicted_tokens: u64,
    pub total_tokens: usize,
    pub nodes: usize,
    pub memory_bytes: usize,
}

impl Tree {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            seed: Seed::new(),
            runs: Slab::new(),
            details: Column::new(),
            marks: Slab::new(),
            weights: Column::new(),
            births: Slab::new(),
            spans: Spans::new(config.overlap(), config.limits.generation),
            children: ChildTable::new(),
            spaces: Slab::new(),
            default_space: NIL,
            named_spaces: HashMap::with_hasher(RandomState::default()),
            ranked_spaces: Heap::new(),
            space_positions: Column::new(),
            heap_bytes: 0,
            digests: Slab::new(),
            digest_count: 0,
            events: VecDeque::new(),
            touches: TouchLog::new(),
            clock: 0,
            epoch: 0,
            total_units: 0,
            protected_units: 0,
            lookups: Lookups::default(),
            inserts: 0,
            inserted_units: 0,
            evicted_units: 0,
        }
    }

    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Drops all pages and statistics; handles become stale. Queued events stay, and the clock goes on, so that no
    /// handle of before fits anything that comes.
    pub fn reset(&mut self) -> Result<(), NoMemory> {
        if self.config.events {
            self.reserve_event()?;
        }
        let mut events = std::mem::take(&mut self.events);
        if self.config.events {
            events.push_back(Event::Cleared);
        }
        note(Kind::Reset, self.total_units, 0);
        let (clock, epoch) = (self.now(), self.epoch + 1);
        *self = Tree { events, clock, epoch, ..Tree::new(self.config) };
        Ok(())
    }

    /// An internal error, for tests: nothing is right any more when it panics.
    pub fn fail_half_way(&mut self) {
        self.total_units += 1;
        self.runs = Slab::new();
        panic!("as asked for");
    }

    /// For tests of what a failed check does: every check until the next reset fails.
    pub const fn miscount(&mut self) {
        self.total_units += 1;
    }

    /// Gives back what an empty tree does not need: else the most that it ever held would stay allocated. What names
    /// or counts pages stays: clock, epoch, events and statistics. The touch log has been drained.
    pub(super) fn release_memory(&mut self) {
        (self.runs, self.details) = (Slab::new(), Column::new());
        (self.marks, self.weights) = (Slab::new(), Column::new());
        (self.births, self.spaces, self.digests) = (Slab::new(), Slab::new(), Slab::new());
        self.spans = Spans::new(self.config.overlap(), self.config.limits.generation);
        self.children = ChildTable::new();
        self.named_spaces = HashMap::with_hasher(RandomState::default());
        self.ranked_spaces = Heap::new();
        self.space_positions = Column::new();
    }

    pub const fn total_size(&self) -> usize {
        self.total_units
    }

    pub const fn protected_size(&self) -> usize {
        self.protected_units
    }

    pub fn stats(&self) -> Stats {
        let mut lookups = self.lookups;
        lookups += self.touches.lookups();
        Stats {
            lookups: lookups.count,
            lookup_tokens: lookups.given,
            hit_tokens: lookups.hit,
            inserts: self.inserts,
            inserted_tokens: self.inserted_units,
            evicted_tokens: self.evicted_units,
            total_tokens: self.total_units,
            nodes: self.runs.len(),
            memory_bytes: self.memory_bytes(),
        }
    }

    fn memory_bytes(&self) -> usize {
        let slabs = self.runs.bytes() + self.marks.bytes() + self.births.bytes() + self.spaces.bytes();
        let columns = self.details.bytes() + self.weights.bytes() + self.space_positions.bytes();
        let tables = self.touches.bytes() + self.children.bytes() + self.named_spaces.allocation_size();
        let digests = self.digests.bytes() + self.digest_count * size_of::<Digest>();
        let heaps = self.heap_bytes + self.ranked_spaces.bytes();
        let events = self.events.capacity() * size_of::<Event>();
        let spans = self.spans.bytes() + self.spans.table_bytes();
        size_of::<Self>() + slabs + columns + tables + digests + heaps + events + spans
    }

    pub(super) fn now(&self) -> u64 {
        self.clock + self.touches.len() as u64
    }

    /// The touch log has been drained.
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The caller has reserved a run.
    pub(super) fn new_run(&mut self, run: Run, detail: Detail) -> u32 {
        let id = self.runs.insert(run);
        self.details.set(id, detail);
        id
    }
}

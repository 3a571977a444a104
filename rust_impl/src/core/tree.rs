//! The whole tree and what it counts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use foldhash::quality::RandomState;
use hashbrown::{HashMap, HashTable};

use super::births::Birth;
use super::config::Config;
use super::events::Event;
use super::hashing::Digest;
use super::heap::Heap;
use super::marks::Mark;
use super::node::Run;
use super::slab::Slab;
use super::spaces::{Namespace, Space};
use super::span::Spans;
use super::touches::TouchLog;
use super::{NIL, NoMemory};

/// Methods that change anything start with `drain_touches`. Those on `&self` may run at the same time as each other.
pub struct Tree {
    pub(super) config: Config,
    pub(super) seed: RandomState,
    pub(super) runs: Slab<Run>,
    pub(super) marks: Slab<Mark>,
    pub(super) births: Slab<Birth>,
    pub(super) spans: Spans,
    pub(super) children: HashTable<u32>,

    pub(super) spaces: Slab<Space>,
    pub(super) default_space: u32,
    pub(super) named_spaces: HashMap<Arc<Namespace>, u32, RandomState>,
    /// The spaces with candidates, by their smallest rank.
    pub(super) ranked_spaces: Heap,
    /// Where each run stands in the heap of its space, and each space in `ranked_spaces`.
    pub(super) run_positions: Vec<u32>,
    pub(super) space_positions: Vec<u32>,
    /// Bytes of the heaps of all spaces.
    pub(super) heap_bytes: usize,

    pub(super) digests: Slab<Vec<Digest>>,
    pub(super) digest_count: usize,
    pub(super) events: VecDeque<Event>,

    pub(super) touches: TouchLog,
    pub(super) clock: AtomicU64,
    /// How often the cache was reset: tells the roots before from those after.
    pub(super) epoch: u64,

    pub(super) total_units: usize,
    pub(super) protected_units: usize,
    pub(super) lookups: AtomicU64,
    pub(super) lookup_units: AtomicU64,
    pub(super) hit_units: AtomicU64,
    pub(super) inserts: u64,
    pub(super) inserted_units: u64,
    pub(super) evicted_units: u64,
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
            seed: RandomState::default(),
            runs: Slab::new(),
            marks: Slab::new(),
            births: Slab::new(),
            spans: Spans::new(config.overlap(), config.limits.generation),
            children: HashTable::new(),
            spaces: Slab::new(),
            default_space: NIL,
            named_spaces: HashMap::with_hasher(RandomState::default()),
            ranked_spaces: Heap::new(),
            run_positions: Vec::new(),
            space_positions: Vec::new(),
            heap_bytes: 0,
            digests: Slab::new(),
            digest_count: 0,
            events: VecDeque::new(),
            touches: TouchLog::new(),
            clock: AtomicU64::new(0),
            epoch: 0,
            total_units: 0,
            protected_units: 0,
            lookups: AtomicU64::new(0),
            lookup_units: AtomicU64::new(0),
            hit_units: AtomicU64::new(0),
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
        let (clock, epoch) = (self.now(), self.epoch + 1);
        *self = Tree { events, clock: AtomicU64::new(clock), epoch, ..Tree::new(self.config) };
        Ok(())
    }

    /// Gives back what an empty tree does not need: else the most that it ever held would stay allocated. What names
    /// or counts pages stays: clock, epoch, events and statistics. The touch log has been drained.
    pub(super) fn release_memory(&mut self) {
        (self.runs, self.marks, self.births) = (Slab::new(), Slab::new(), Slab::new());
        (self.spaces, self.digests) = (Slab::new(), Slab::new());
        self.spans = Spans::new(self.config.overlap(), self.config.limits.generation);
        self.children = HashTable::new();
        self.named_spaces = HashMap::with_hasher(RandomState::default());
        self.ranked_spaces = Heap::new();
        (self.run_positions, self.space_positions) = (Vec::new(), Vec::new());
    }

    pub const fn total_size(&self) -> usize {
        self.total_units
    }

    pub const fn protected_size(&self) -> usize {
        self.protected_units
    }

    pub fn stats(&self) -> Stats {
        Stats {
            lookups: self.lookups.load(Relaxed),
            lookup_tokens: self.lookup_units.load(Relaxed),
            hit_tokens: self.hit_units.load(Relaxed),
            inserts: self.inserts,
            inserted_tokens: self.inserted_units,
            evicted_tokens: self.evicted_units,
            total_tokens: self.total_units,
            nodes: self.runs.len(),
            memory_bytes: self.memory_bytes(),
        }
    }

    fn memory_bytes(&self) -> usize {
        let word = size_of::<u32>();
        let slabs = self.runs.bytes() + self.marks.bytes() + self.births.bytes() + self.spaces.bytes();
        let tables = self.children.allocation_size() + self.named_spaces.allocation_size();
        let positions = (self.run_positions.capacity() + self.space_positions.capacity()) * word;
        let digests = self.digests.bytes() + self.digest_count * size_of::<Digest>();
        let heaps = self.heap_bytes + self.ranked_spaces.bytes();
        let events = self.events.capacity() * size_of::<Event>();
        let spans = self.spans.bytes() + self.spans.table_bytes();
        size_of::<Self>() + slabs + tables + positions + digests + heaps + events + spans
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.load(Relaxed)
    }

    pub(super) fn tick(&mut self) -> u64 {
        *self.clock.get_mut() += 1;
        self.now()
    }

    /// The caller has reserved a run.
    pub(super) fn new_run(&mut self, run: Run) -> u32 {
        let id = self.runs.insert(run);
        if self.run_positions.len() < self.runs.id_limit() {
            self.run_positions.push(NIL);
        }
        id
    }
}

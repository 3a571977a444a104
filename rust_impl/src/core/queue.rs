//! The candidates of one space in the order of their ranks.
//!
//! Ranks mostly come in order: what is touched now goes last under `lru`, what is made now first under `filo`. Such a
//! candidate is put at an end of a list, which costs the same however many there are; the others stand in a heap.

use super::heap::{Heap, Places, Rank};
use super::node::Detail;
use super::slab::Column;
use super::tree::Tree;
use super::{NIL, NoMemory};

/// `Detail::before` of a run that is no candidate, and of one that stands in the heap (`after` is its place there).
/// Else `before` and `after` are its neighbours in the list.
pub const OUTSIDE: u32 = NIL - 1;
const IN_HEAP: u32 = NIL - 2;

pub struct Queue {
    /// The ends of the list: smallest rank, largest rank.
    first: u32,
    last: u32,
    heap: Heap,
}

impl Places for Column<Detail> {
    fn place(&mut self, id: u32, at: usize) {
        self[id].after = at as u32;
    }
}

impl Queue {
    pub const fn new() -> Self {
        Self { first: NIL, last: NIL, heap: Heap::new() }
    }

    pub fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        self.heap.reserve(more)
    }

    pub fn bytes(&self) -> usize {
        self.heap.bytes()
    }

    /// The runs of which one has the smallest rank.
    pub fn firsts(&self) -> [u32; 2] {
        [self.first, self.heap.top().map_or(NIL, |(_, run)| run)]
    }

    /// First and last of the list.
    pub const fn ends(&self) -> (u32, u32) {
        (self.first, self.last)
    }

    pub fn link(&mut self) -> &mut u32 {
        &mut self.first
    }

    /// What stands in the list, in order, and then what stands in the heap, with the rank that it has there.
    pub fn list<'a>(&'a self, tree: &'a Tree) -> impl Iterator<Item = u32> + 'a {
        let next = |&run: &u32| Some(tree.details[run].after).filter(|&run| run != NIL);
        std::iter::successors(Some(self.first).filter(|&run| run != NIL), next)
    }

    pub const fn heap(&self) -> &Heap {
        &self.heap
    }
}

impl Tree {
    /// The candidate of smallest rank.
    pub fn first_candidate(&self, space: u32) -> Option<(Rank, u32)> {
        let queue = &self.spaces[space].candidates;
        let listed = (queue.first != NIL).then(|| (self.rank(queue.first), queue.first));
        match (listed, queue.heap.top()) {
            (Some(listed), Some(top)) => Some(listed.min(top)),
            (listed, top) => listed.or(top),
        }
    }

    /// Those that stand before and behind it in the list.
    pub fn neighbours(&self, run: u32) -> [Option<u32>; 2] {
        let Detail { before, after, .. } = self.details[run];
        match before {
            OUTSIDE | IN_HEAP => [None, None],
            _ => [before, after].map(|neighbour| Some(neighbour).filter(|&run| run != NIL)),
        }
    }

    pub fn is_queued(&self, run: u32) -> bool {
        self.details[run].before != OUTSIDE
    }

    /// Whether its place is in the heap, and which.
    pub fn place_in_heap(&self, run: u32) -> Option<usize> {
        let detail = &self.details[run];
        (detail.before == IN_HEAP).then_some(detail.after as usize)
    }

    /// Puts a candidate where its rank belongs. Where a place in the heap can't be had, that takes as long as the list is.
    pub fn enqueue(&mut self, run: u32) {
        let (space, rank) = (self.details[run].space, self.rank(run));
        // Most often it goes behind all others; then nothing need be known of its neighbours, which are cold.
        let last = self.spaces[space].candidates.last;
        if last != NIL && (last == run || rank < self.rank(last)) {
            if let Some(place) = self.place_in_heap(run) {
                self.spaces[space].candidates.heap.set(&mut self.details, place, rank);
                return;
            }
            if self.is_queued(run) {
                let Detail { before, after, .. } = self.details[run];
                if (before == NIL || self.rank(before) < rank) && (after == NIL || rank < self.rank(after)) {
                    return;
                }
            }
        }
        self.dequeue(run);
        let (first, last) = self.spaces[space].candidates.ends();
        let (before, after) = if last == NIL || self.rank(last) < rank {
            (last, NIL)
        } else if rank < self.rank(first) {
            (NIL, first)
        } else if self.reserve_candidate(space).is_ok() {
            self.details[run].before = IN_HEAP;
            self.spaces[space].candidates.heap.insert(&mut self.details, run, rank);
            return;
        } else {
            self.place_in_list(last, rank)
        };
        self.link_candidates(space, before, run);
        self.link_candidates(space, run, after);
    }

    /// Where that rank belongs in the list, for want of memory for the heap: what stands before and behind it there.
    fn place_in_list(&self, last: u32, rank: Rank) -> (u32, u32) {
        let (mut before, mut after) = (last, NIL);
        while before != NIL && rank < self.rank(before) {
            (before, after) = (self.details[before].before, before);
        }
        (before, after)
    }

    /// Takes it out, if it is in.
    pub fn dequeue(&mut self, run: u32) {
        let space = self.details[run].space;
        let Detail { before, after, .. } = self.details[run];
        self.details[run].before = OUTSIDE;
        match before {
            OUTSIDE => {}
            IN_HEAP => self.spaces[space].candidates.heap.remove(&mut self.details, after as usize),
            before => self.link_candidates(space, before, after),
        }
    }

    /// Makes `lower` follow `upper` in the list; NIL is its end.
    fn link_candidates(&mut self, space: u32, upper: u32, lower: u32) {
        match upper {
            NIL => self.spaces[space].candidates.first = lower,
            _ => self.details[upper].after = lower,
        }
        match lower {
            NIL => self.spaces[space].candidates.last = upper,
            _ => self.details[lower].before = upper,
        }
    }
}

//! Orders of leaves by rank. `last[leaf]` is the rank: the smallest goes first, and a touch only ever raises it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::NIL;
use _triradix_rust::core::parts::{Heap, Places};

pub trait Queue {
    const NAME: &str;
    /// Whether anything but `last` matters.
    const REMEMBERS: bool = true;

    /// For the leaves 0 .. `leaves`, none of which is in it yet.
    fn new(leaves: usize) -> Self;
    fn insert(&mut self, last: &[u64], leaf: u32);
    fn touch(&mut self, last: &[u64], leaf: u32);
    /// Takes out the `count` leaves of smallest rank.
    fn evict(&mut self, last: &[u64], count: usize, gone: &mut Vec<u32>);
}

/// As SGLang's RadixCache: each call makes a heap of all leaves.
pub struct AllLeaves {
    present: Vec<bool>,
}

impl Queue for AllLeaves {
    const NAME: &str = "heap of all leaves made at each call";
    const REMEMBERS: bool = false;

    fn new(leaves: usize) -> Self {
        AllLeaves { present: vec![false; leaves] }
    }

    fn insert(&mut self, _: &[u64], leaf: u32) {
        self.present[leaf as usize] = true;
    }

    fn touch(&mut self, _: &[u64], _: u32) {}

    fn evict(&mut self, last: &[u64], count: usize, gone: &mut Vec<u32>) {
        let present = (0..last.len()).filter(|&leaf| self.present[leaf]);
        let mut heap: BinaryHeap<_> = present.map(|leaf| Reverse((last[leaf], leaf as u32))).collect();
        for _ in 0..count {
            let Some(Reverse((_, leaf))) = heap.pop() else { return };
            self.present[leaf as usize] = false;
            gone.push(leaf);
        }
    }
}

/// A touch pushes one more entry; those that no longer say the rank are dropped when they come up, or all at once when
/// they are as many as the leaves.
pub struct LazyAtTouch {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    leaves: usize,
}

impl Queue for LazyAtTouch {
    const NAME: &str = "lazy heap, an entry a touch";

    fn new(_: usize) -> Self {
        LazyAtTouch { heap: BinaryHeap::new(), leaves: 0 }
    }

    fn insert(&mut self, last: &[u64], leaf: u32) {
        self.leaves += 1;
        self.touch(last, leaf);
    }

    fn touch(&mut self, last: &[u64], leaf: u32) {
        self.heap.push(Reverse((last[leaf as usize], leaf)));
        if self.heap.len() > 2 * self.leaves + 64 {
            self.heap.retain(|&Reverse((rank, leaf))| last[leaf as usize] == rank);
        }
    }

    fn evict(&mut self, last: &[u64], count: usize, gone: &mut Vec<u32>) {
        let wanted = gone.len() + count;
        while gone.len() < wanted {
            let Some(Reverse((rank, leaf))) = self.heap.pop() else { return };
            if last[leaf as usize] == rank {
                self.leaves -= 1;
                gone.push(leaf);
            }
        }
    }
}

/// A touch writes nothing here: an entry that comes up with an old rank goes back with the new one. Right only because
/// ranks never fall.
pub struct LazyAtPop {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Queue for LazyAtPop {
    const NAME: &str = "lazy heap, corrected at the top";

    fn new(_: usize) -> Self {
        LazyAtPop { heap: BinaryHeap::new() }
    }

    fn insert(&mut self, last: &[u64], leaf: u32) {
        self.heap.push(Reverse((last[leaf as usize], leaf)));
    }

    fn touch(&mut self, _: &[u64], _: u32) {}

    fn evict(&mut self, last: &[u64], count: usize, gone: &mut Vec<u32>) {
        let wanted = gone.len() + count;
        while gone.len() < wanted {
            let Some(mut top) = self.heap.peek_mut() else { return };
            let Reverse((rank, leaf)) = *top;
            if last[leaf as usize] == rank {
                std::collections::binary_heap::PeekMut::pop(top);
                gone.push(leaf);
            } else {
                *top = Reverse((last[leaf as usize], leaf));
            }
        }
    }
}

/// A heap whose entries know their places, with ranks of one word.
pub struct Indexed<const ARITY: usize> {
    entries: Vec<(u64, u32)>,
    positions: Vec<u32>,
}

impl<const ARITY: usize> Indexed<ARITY> {
    fn place(&mut self, at: usize, entry: (u64, u32)) {
        self.entries[at] = entry;
        self.positions[entry.1 as usize] = at as u32;
    }

    fn raise(&mut self, mut at: usize, entry: (u64, u32)) {
        while at > 0 && entry.0 < self.entries[(at - 1) / ARITY].0 {
            self.place(at, self.entries[(at - 1) / ARITY]);
            at = (at - 1) / ARITY;
        }
        self.place(at, entry);
    }

    fn sink(&mut self, mut at: usize, entry: (u64, u32)) {
        loop {
            let first = at * ARITY + 1;
            let children = first..(first + ARITY).min(self.entries.len());
            let Some(smallest) = children.min_by_key(|&child| self.entries[child].0) else { break };
            if entry.0 <= self.entries[smallest].0 {
                break;
            }
            self.place(at, self.entries[smallest]);
            at = smallest;
        }
        self.place(at, entry);
    }
}

impl<const ARITY: usize> Queue for Indexed<ARITY> {
    const NAME: &str = match ARITY {
        2 => "indexed binary heap",
        4 => "indexed 4-ary heap",
        _ => "indexed 8-ary heap",
    };

    fn new(leaves: usize) -> Self {
        Indexed { entries: Vec::new(), positions: vec![NIL; leaves] }
    }

    fn insert(&mut self, last: &[u64], leaf: u32) {
        let entry = (last[leaf as usize], leaf);
        self.entries.push(entry);
        self.raise(self.entries.len() - 1, entry);
    }

    fn touch(&mut self, last: &[u64], leaf: u32) {
        self.sink(self.positions[leaf as usize] as usize, (last[leaf as usize], leaf));
    }

    fn evict(&mut self, _: &[u64], count: usize, gone: &mut Vec<u32>) {
        for _ in 0..count {
            let Some(&(_, leaf)) = self.entries.first() else { return };
            let moved = self.entries.swap_remove(0);
            debug_assert_eq!(moved.1, leaf);
            self.positions[leaf as usize] = NIL;
            if let Some(&entry) = self.entries.first() {
                self.sink(0, entry);
            }
            gone.push(leaf);
        }
    }
}

/// The crate's own: 4-ary, ranks of two words, which all policies need.
pub struct CrateHeap {
    heap: Heap,
    positions: Positions,
}

struct Positions(Vec<u32>);

impl Places for Positions {
    fn place(&mut self, id: u32, at: usize) {
        self.0[id as usize] = at as u32;
    }
}

impl Queue for CrateHeap {
    const NAME: &str = "indexed heap of the crate (any policy)";

    fn new(leaves: usize) -> Self {
        let mut heap = Heap::new();
        heap.reserve(leaves).expect("there is memory for a benchmark");
        CrateHeap { heap, positions: Positions(vec![NIL; leaves]) }
    }

    fn insert(&mut self, last: &[u64], leaf: u32) {
        self.heap.insert(&mut self.positions, leaf, (0, last[leaf as usize] as i64));
    }

    fn touch(&mut self, last: &[u64], leaf: u32) {
        let at = self.positions.0[leaf as usize] as usize;
        self.heap.set(&mut self.positions, at, (0, last[leaf as usize] as i64));
    }

    fn evict(&mut self, _: &[u64], count: usize, gone: &mut Vec<u32>) {
        for _ in 0..count {
            let Some((_, leaf)) = self.heap.top() else { return };
            self.heap.remove(&mut self.positions, 0);
            gone.push(leaf);
        }
    }
}

/// A list through all leaves in the order of their last access. Only for LRU (and MRU), where a touch goes to the end.
pub struct List {
    /// (before, after) of each leaf; entry `leaves` is both ends.
    links: Vec<(u32, u32)>,
}

impl List {
    fn ends(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    fn unlink(&mut self, leaf: u32) {
        let (before, after) = self.links[leaf as usize];
        self.links[before as usize].1 = after;
        self.links[after as usize].0 = before;
    }
}

impl Queue for List {
    const NAME: &str = "ordered list (LRU only)";

    fn new(leaves: usize) -> Self {
        List { links: vec![(leaves as u32, leaves as u32); leaves + 1] }
    }

    fn insert(&mut self, _: &[u64], leaf: u32) {
        let ends = self.ends();
        let newest = std::mem::replace(&mut self.links[ends as usize].0, leaf);
        self.links[newest as usize].1 = leaf;
        self.links[leaf as usize] = (newest, ends);
    }

    fn touch(&mut self, last: &[u64], leaf: u32) {
        self.unlink(leaf);
        self.insert(last, leaf);
    }

    fn evict(&mut self, _: &[u64], count: usize, gone: &mut Vec<u32>) {
        for _ in 0..count {
            let oldest = self.links[self.ends() as usize].1;
            if oldest == self.ends() {
                return;
            }
            self.unlink(oldest);
            gone.push(oldest);
        }
    }
}

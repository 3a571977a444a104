//! The heap that eviction asks for whoever goes next.

use super::{NIL, NoMemory};

/// Smallest first. Two candidates never have the same: each tick belongs to one path.
pub type Rank = (i64, i64);

#[derive(Clone, Copy)]
struct Entry {
    rank: Rank,
    id: u32,
}

/// A 4-ary heap whose entries know their places: `positions[id]`, NIL for what is not in it.
pub struct Heap {
    entries: Vec<Entry>,
}

const ARITY: usize = 4;

impl Heap {
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    pub fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        Ok(self.entries.try_reserve(more)?)
    }

    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    pub fn top(&self) -> Option<(Rank, u32)> {
        self.entries.first().map(|entry| (entry.rank, entry.id))
    }

    pub fn iter(&self) -> impl Iterator<Item = (Rank, u32)> {
        self.entries.iter().map(|entry| (entry.rank, entry.id))
    }

    /// Puts `id` in, or moves it to where its new rank belongs.
    pub fn set(&mut self, positions: &mut [u32], id: u32, rank: Rank) {
        let entry = Entry { rank, id };
        let at = positions[id as usize];
        if at == NIL {
            self.entries.push(entry);
            self.raise(positions, self.entries.len() - 1, entry);
        } else {
            self.settle(positions, at as usize, entry);
        }
    }

    /// Takes `id` out, if it is in.
    pub fn remove(&mut self, positions: &mut [u32], id: u32) {
        let at = std::mem::replace(&mut positions[id as usize], NIL);
        if at == NIL {
            return;
        }
        let Some(moved) = self.entries.pop() else { unreachable!("an entry with a position is in the heap") };
        if moved.id != id {
            self.settle(positions, at as usize, moved);
        }
    }

    /// The rank of the parent of entry `at` is not larger than its own.
    pub fn in_order(&self, at: usize) -> bool {
        at == 0 || self.entries[(at - 1) / ARITY].rank <= self.entries[at].rank
    }

    fn settle(&mut self, positions: &mut [u32], at: usize, entry: Entry) {
        if at > 0 && entry.rank < self.entries[(at - 1) / ARITY].rank {
            self.raise(positions, at, entry);
        } else {
            self.sink(positions, at, entry);
        }
    }

    fn raise(&mut self, positions: &mut [u32], mut at: usize, entry: Entry) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.entries[parent].rank <= entry.rank {
                break;
            }
            self.place(positions, at, self.entries[parent]);
            at = parent;
        }
        self.place(positions, at, entry);
    }

    fn sink(&mut self, positions: &mut [u32], mut at: usize, entry: Entry) {
        loop {
            let first = at * ARITY + 1;
            let children = first..(first + ARITY).min(self.entries.len());
            let Some(smallest) = children.min_by_key(|&child| self.entries[child].rank) else { break };
            if entry.rank <= self.entries[smallest].rank {
                break;
            }
            self.place(positions, at, self.entries[smallest]);
            at = smallest;
        }
        self.place(positions, at, entry);
    }

    fn place(&mut self, positions: &mut [u32], at: usize, entry: Entry) {
        self.entries[at] = entry;
        positions[entry.id as usize] = at as u32;
    }
}

//! A heap whose entries can be moved and taken out from the middle.

use super::NoMemory;

/// Smallest first. Two candidates never have the same: each tick belongs to one path.
pub type Rank = (i64, i64);

#[derive(Clone, Copy)]
struct Entry {
    rank: Rank,
    id: u32,
}

/// Is told where each entry stands.
pub trait Places {
    fn place(&mut self, id: u32, at: usize);
}

/// A 4-ary heap.
pub struct Heap {
    entries: Vec<Entry>,
}

const ARITY: usize = 4;

impl Heap {
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    #[inline]
    pub fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        if more <= self.entries.capacity() - self.entries.len() {
            Ok(())
        } else {
            Ok(self.entries.try_reserve(more)?)
        }
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

    /// The caller has reserved.
    pub fn insert(&mut self, places: &mut impl Places, id: u32, rank: Rank) {
        let entry = Entry { rank, id };
        self.entries.push(entry);
        self.raise(places, self.entries.len() - 1, entry);
    }

    /// Moves the entry at `at` to where its new rank belongs.
    pub fn set(&mut self, places: &mut impl Places, at: usize, rank: Rank) {
        let id = self.entries[at].id;
        self.settle(places, at, Entry { rank, id });
    }

    /// Takes out the entry at `at`.
    pub fn remove(&mut self, places: &mut impl Places, at: usize) {
        let Some(moved) = self.entries.pop() else { unreachable!("an entry with a place is in the heap") };
        if at < self.entries.len() {
            self.settle(places, at, moved);
        }
    }

    /// The rank of the parent of entry `at` is not larger than its own.
    pub fn in_order(&self, at: usize) -> bool {
        at == 0 || self.entries[(at - 1) / ARITY].rank <= self.entries[at].rank
    }

    fn settle(&mut self, places: &mut impl Places, at: usize, entry: Entry) {
        if at > 0 && entry.rank < self.entries[(at - 1) / ARITY].rank {
            self.raise(places, at, entry);
        } else {
            self.sink(places, at, entry);
        }
    }

    fn raise(&mut self, places: &mut impl Places, mut at: usize, entry: Entry) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.entries[parent].rank <= entry.rank {
                break;
            }
            self.put(places, at, self.entries[parent]);
            at = parent;
        }
        self.put(places, at, entry);
    }

    fn sink(&mut self, places: &mut impl Places, mut at: usize, entry: Entry) {
        loop {
            let first = at * ARITY + 1;
            let children = first..(first + ARITY).min(self.entries.len());
            let Some(smallest) = children.min_by_key(|&child| self.entries[child].rank) else { break };
            if entry.rank <= self.entries[smallest].rank {
                break;
            }
            self.put(places, at, self.entries[smallest]);
            at = smallest;
        }
        self.put(places, at, entry);
    }

    fn put(&mut self, places: &mut impl Places, at: usize, entry: Entry) {
        self.entries[at] = entry;
        places.place(entry.id, at);
    }
}

//! Child lookup: one table for the whole tree, from (parent run, first page) to the child.
//!
//! The hash is seeded for each cache, so that nobody can choose tokens that collide, and kept with the run.

use std::hash::BuildHasher;

use super::key::Key;
use super::tree::Tree;
use super::{NoMemory, prefetch};

/// Open addressing, linear probing: hash (upper half) and run of each entry in one word, so that a look-up reads one
/// cache line in most cases.
pub struct ChildTable {
    /// A power of two of them, or none.
    entries: Vec<u64>,
    count: usize,
}

const VACANT: u64 = u64::MAX;
const SMALLEST: usize = 16;

const fn entry(hash: u32, run: u32) -> u64 {
    (hash as u64) << 32 | run as u64
}

impl ChildTable {
    pub const fn new() -> Self {
        Self { entries: Vec::new(), count: 0 }
    }

    pub const fn len(&self) -> usize {
        self.count
    }

    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<u64>()
    }

    /// Room for `more` entries, at most four fifths full: then a page that is missing is known to be after two lines.
    #[inline]
    pub fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        if (self.count + more) * 5 <= self.entries.len() * 4 { Ok(()) } else { self.grow(more) }
    }

    #[cold]
    fn grow(&mut self, more: usize) -> Result<(), NoMemory> {
        let mut size = SMALLEST.max(2 * self.entries.len());
        while (self.count + more) * 5 > size * 4 {
            size *= 2;
        }
        let mut entries = Vec::new();
        entries.try_reserve_exact(size)?;
        entries.resize(size, VACANT);
        let old = std::mem::replace(&mut self.entries, entries);
        for entry in old.into_iter().filter(|&entry| entry != VACANT) {
            self.put(entry);
        }
        Ok(())
    }

    const fn home(&self, hash: u32) -> usize {
        hash as usize & (self.entries.len() - 1)
    }

    fn put(&mut self, entry: u64) {
        let last = self.entries.len() - 1;
        let mut at = self.home((entry >> 32) as u32);
        while self.entries[at] != VACANT {
            at = (at + 1) & last;
        }
        self.entries[at] = entry;
    }

    /// The caller has reserved.
    pub fn insert(&mut self, hash: u32, run: u32) {
        self.put(entry(hash, run));
        self.count += 1;
    }

    /// The runs of that hash.
    #[inline(always)]
    pub fn find(&self, hash: u32) -> impl Iterator<Item = u32> {
        let last = self.entries.len().wrapping_sub(1);
        let mut at = hash as usize & last;
        std::iter::from_fn(move || {
            loop {
                let &entry = self.entries.get(at)?;
                at = (at + 1) & last;
                if entry == VACANT {
                    return None;
                }
                if (entry >> 32) as u32 == hash {
                    return Some(entry as u32);
                }
            }
        })
    }

    /// Where (hash, run), which is there, stands.
    fn place(&self, hash: u32, run: u32) -> usize {
        let (last, sought) = (self.entries.len() - 1, entry(hash, run));
        let mut at = self.home(hash);
        while self.entries[at] != sought {
            assert!(self.entries[at] != VACANT, "each run but a root stands in the child table");
            at = (at + 1) & last;
        }
        at
    }

    pub fn replace(&mut self, hash: u32, old: u32, new: u32) {
        let at = self.place(hash, old);
        self.entries[at] = entry(hash, new);
    }

    /// Closes the gap, so that no look-up stops early.
    pub fn remove(&mut self, hash: u32, run: u32) {
        let last = self.entries.len() - 1;
        let mut gap = self.place(hash, run);
        let mut at = gap;
        loop {
            at = (at + 1) & last;
            let entry = self.entries[at];
            if entry == VACANT {
                break;
            }
            // It may move up if its home does not lie behind the gap.
            let distance = at.wrapping_sub(self.home((entry >> 32) as u32)) & last;
            if distance >= (at.wrapping_sub(gap) & last) {
                self.entries[gap] = entry;
                gap = at;
            }
        }
        self.entries[gap] = VACANT;
        self.count -= 1;
    }

    /// Asks for the line where that hash stands.
    #[inline]
    pub fn prefetch(&self, hash: u32) {
        if !self.entries.is_empty() {
            prefetch::line(&raw const self.entries[self.home(hash)]);
        }
    }
}

/// Secrets of a tree, of which its hashes are made.
#[derive(Clone, Copy)]
pub struct Seed([u64; 4]);

impl Seed {
    pub fn new() -> Self {
        let state = foldhash::quality::RandomState::default();
        Self(std::array::from_fn(|number| state.hash_one(number)))
    }
}

/// Both halves of the product: each bit of either factor has a say in each bit. (The step of wyhash and of foldhash.)
#[inline]
const fn folded(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Two lanes of four tokens a step, so that the products need not wait for each other. All pages of a tree are equally
/// long, so the last one may be filled up.
#[inline(never)]
fn hash_page<T: Copy>(Seed(seed): &Seed, parent: u32, page: &[T], narrow: impl Fn(T) -> u32) -> u64 {
    const STEP: usize = 8;
    let mut lanes = [seed[0] ^ u64::from(parent), seed[1]];
    let mut step = |tokens: [u32; STEP]| {
        let word = |at: usize| u64::from(tokens[at]) | u64::from(tokens[at + 1]) << 32;
        lanes[0] = folded(word(0) ^ lanes[0], word(2) ^ seed[2]);
        lanes[1] = folded(word(4) ^ lanes[1], word(6) ^ seed[3]);
    };
    let (steps, rest) = page.as_chunks::<STEP>();
    steps.iter().for_each(|tokens| step(tokens.map(&narrow)));
    if !rest.is_empty() {
        let mut tokens = [0; STEP];
        tokens.iter_mut().zip(rest).for_each(|(token, &wide)| *token = narrow(wide));
        step(tokens);
    }
    folded(lanes[0] ^ seed[3], lanes[1] ^ seed[2])
}

impl Tree {
    /// The place of a child whose first page `key` begins with.
    #[inline(always)]
    pub fn child_hash(&self, parent: u32, key: Key) -> u32 {
        let seed = &self.seed;
        let hash = match (self.config.page_tokens(), key) {
            // One word, as most often.
            (1, _) => folded((u64::from(parent) << 32 | u64::from(key.token(0))) ^ seed.0[0], seed.0[1]),
            (count, Key::Narrow(tokens)) => hash_page(seed, parent, &tokens[..count], |token| token),
            (count, Key::Wide(tokens)) => hash_page(seed, parent, &tokens[..count], |token| token as u32),
        };
        (hash >> 32) as u32 ^ hash as u32
    }

    /// The child of `parent` that begins with the page that `key` begins with, and how many tokens they share.
    #[inline(always)]
    pub fn child(&self, parent: u32, key: Key) -> Option<(u32, usize)> {
        match self.only_child(parent) {
            Some(id) => self.sharing(id, key),
            None => self.listed_child(parent, self.child_hash(parent, key), key),
        }
    }

    /// The same by way of the table.
    #[inline(always)]
    pub fn listed_child(&self, parent: u32, hash: u32, key: Key) -> Option<(u32, usize)> {
        for id in self.children.find(hash) {
            if self.runs[id].parent == parent
                && let Some(found) = self.sharing(id, key)
            {
                return Some(found);
            }
        }
        None
    }

    /// How many tokens a run shares with the key, if that is a page at least.
    #[inline(always)]
    fn sharing(&self, run: u32, key: Key) -> Option<(u32, usize)> {
        let common = key.common(self.tokens(run));
        if common >= self.config.page_tokens() { Some((run, common)) } else { None }
    }

    /// Hangs a run, whose parent and hash stand, below its parent. The caller has reserved.
    pub fn link_child(&mut self, id: u32) {
        let parent = self.runs[id].parent;
        self.children.insert(self.details[id].hash, id);
        self.runs[parent].children += 1;
        self.runs[parent].child_xor ^= id;
    }

    pub fn unlink_child(&mut self, id: u32) {
        let parent = self.runs[id].parent;
        self.children.remove(self.details[id].hash, id);
        self.runs[parent].children -= 1;
        self.runs[parent].child_xor ^= id;
    }

    /// Gives the place of `old` below its parent to `new`, which begins with the same page.
    pub fn replace_child(&mut self, old: u32, new: u32) {
        let (hash, parent) = (self.details[old].hash, self.runs[old].parent);
        self.children.replace(hash, old, new);
        self.details[new].hash = hash;
        self.runs[new].parent = parent;
        self.runs[parent].child_xor ^= old ^ new;
    }

    pub fn only_child(&self, id: u32) -> Option<u32> {
        if self.runs[id].children == 1 { Some(self.runs[id].child_xor) } else { None }
    }
}

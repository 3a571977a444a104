//! Child lookup: one table for the whole tree, from (parent run, first page) to the child.
//!
//! The hash is seeded for each cache, so that nobody can choose tokens that collide, and kept with the run.

use std::hash::{BuildHasher, Hasher};

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

    /// Room for `more` entries, at most three quarters full.
    #[inline]
    pub fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        if (self.count + more) * 4 <= self.entries.len() * 3 { Ok(()) } else { self.grow(more) }
    }

    #[cold]
    fn grow(&mut self, more: usize) -> Result<(), NoMemory> {
        let mut size = SMALLEST.max(2 * self.entries.len());
        while (self.count + more) * 4 > size * 3 {
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
    #[inline]
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

/// Tokens that are hashed at once.
const PART: usize = 16;

/// As bytes, `PART` by `PART`, so that keys of every width have the same hash.
#[inline]
fn hash_tokens(hasher: &mut impl Hasher, tokens: &[u32]) {
    for part in tokens.chunks(PART) {
        // SAFETY: integers are bytes.
        hasher.write(unsafe { std::slice::from_raw_parts(part.as_ptr().cast::<u8>(), size_of_val(part)) });
    }
}

impl Tree {
    /// The place of a child whose first page `key` begins with.
    #[inline]
    pub fn child_hash(&self, parent: u32, key: Key) -> u32 {
        let mut hasher = self.seed.build_hasher();
        match (self.config.page_tokens(), key) {
            // One word, as most often.
            (1, _) => hasher.write_u64(u64::from(parent) << 32 | u64::from(key.token(0))),
            (count, Key::Narrow(tokens)) => {
                hasher.write_u32(parent);
                hash_tokens(&mut hasher, &tokens[..count]);
            }
            (count, Key::Wide(tokens)) => {
                hasher.write_u32(parent);
                let mut part = [0; PART];
                for tokens in tokens[..count].chunks(PART) {
                    part.iter_mut().zip(tokens).for_each(|(token, &wide)| *token = wide as u32);
                    hash_tokens(&mut hasher, &part[..tokens.len()]);
                }
            }
        }
        let hash = hasher.finish();
        (hash >> 32) as u32 ^ hash as u32
    }

    /// The child of `parent` that begins with the page that `key` begins with, and how many tokens they share.
    #[inline]
    pub fn child(&self, parent: u32, hash: u32, key: Key) -> Option<(u32, usize)> {
        let page = self.config.page_tokens();
        for id in self.children.find(hash) {
            if self.runs[id].parent == parent {
                let common = key.common(self.tokens(id));
                if common >= page {
                    return Some((id, common));
                }
            }
        }
        None
    }

    /// Hangs a run, whose parent and hash stand, below its parent. The caller has reserved.
    pub fn link_child(&mut self, id: u32) {
        let parent = self.runs[id].parent;
        self.children.insert(self.details[id].hash, id);
        self.runs[parent].children += 1;
        self.details[parent].child_xor ^= id;
    }

    pub fn unlink_child(&mut self, id: u32) {
        let parent = self.runs[id].parent;
        self.children.remove(self.details[id].hash, id);
        self.runs[parent].children -= 1;
        self.details[parent].child_xor ^= id;
    }

    /// Gives the place of `old` below its parent to `new`, which begins with the same page.
    pub fn replace_child(&mut self, old: u32, new: u32) {
        let (hash, parent) = (self.details[old].hash, self.runs[old].parent);
        self.children.replace(hash, old, new);
        self.details[new].hash = hash;
        self.runs[new].parent = parent;
        self.details[parent].child_xor ^= old ^ new;
    }

    pub fn only_child(&self, id: u32) -> Option<u32> {
        if self.runs[id].children == 1 { Some(self.details[id].child_xor) } else { None }
    }
}

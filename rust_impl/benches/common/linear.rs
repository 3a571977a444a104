//! A child table as the crate has it: linear probing, at most four fifths full.

/// Words with the upper half of the hash and the id: a look-up reads one cache line in most cases, which is known
/// beforehand, so that it can be prefetched.
pub struct Linear {
    words: Vec<u64>,
    mask: usize,
}

const EMPTY: u64 = u64::MAX;
const NIL: u32 = u32::MAX;

impl Linear {
    /// Of (hash, id), which are `count`.
    pub fn new(count: usize, entries: impl Iterator<Item = (u64, u32)>) -> Self {
        let mut len = 16;
        while count * 5 > len * 4 {
            len *= 2;
        }
        let mut table = Linear { words: vec![EMPTY; len], mask: len - 1 };
        for (hash, id) in entries {
            let mut at = hash as usize & table.mask;
            while table.words[at] != EMPTY {
                at = (at + 1) & table.mask;
            }
            table.words[at] = hash >> 32 << 32 | u64::from(id);
        }
        table
    }

    /// Where the search for that hash begins.
    pub fn word(&self, hash: u64) -> &u64 {
        &self.words[hash as usize & self.mask]
    }

    /// The id of that hash for which `is_it` holds, or NIL.
    pub fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> u32 {
        let mut at = hash as usize & self.mask;
        loop {
            let word = self.words[at];
            if word == EMPTY {
                return NIL;
            }
            if word >> 32 == hash >> 32 && is_it(word as u32) {
                return word as u32;
            }
            at = (at + 1) & self.mask;
        }
    }
}

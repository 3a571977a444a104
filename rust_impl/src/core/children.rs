//! Child lookup: one table for the whole tree, from (parent run, first page) to the child.
//!
//! The hash is seeded for each cache, so that nobody can choose tokens that collide, and kept with the run.

use std::hash::{BuildHasher, Hash, Hasher};

use super::NoMemory;
use super::tree::Tree;

impl Tree {
    /// `page` is the tokens of one page: page_size + overlap of them.
    pub fn child_hash(&self, parent: u32, page: &[u32]) -> u64 {
        let mut hasher = self.seed.build_hasher();
        hasher.write_u32(parent);
        page.hash(&mut hasher);
        hasher.finish()
    }

    pub fn child(&self, parent: u32, page: &[u32]) -> Option<u32> {
        if self.runs[parent].children == 0 {
            return None;
        }
        let hash = self.child_hash(parent, page);
        let is_it = |&id: &u32| {
            let run = &self.runs[id];
            run.hash == hash && run.parent == parent && self.spans.tokens(&run.window)[..page.len()] == *page
        };
        self.children.find(hash, is_it).copied()
    }

    pub fn reserve_children(&mut self, more: usize) -> Result<(), NoMemory> {
        let runs = &self.runs;
        self.children.try_reserve(more, |&id| runs[id].hash)?;
        Ok(())
    }

    /// Hangs a run, whose parent and window stand, below its parent.
    pub fn link_child(&mut self, id: u32) {
        let parent = self.runs[id].parent;
        let page = self.config.page_size + self.config.overlap();
        let hash = self.child_hash(parent, &self.spans.tokens(&self.runs[id].window)[..page]);
        self.runs[id].hash = hash;
        let runs = &self.runs;
        self.children.insert_unique(hash, id, |&id| runs[id].hash);
        self.runs[parent].children += 1;
        self.runs[parent].child_xor ^= id;
    }

    pub fn unlink_child(&mut self, id: u32) {
        let (hash, parent) = (self.runs[id].hash, self.runs[id].parent);
        let entry = self.children.find_entry(hash, |&other| other == id);
        entry.unwrap_or_else(|_| unreachable!("each run but a root stands in the child table")).remove();
        self.runs[parent].children -= 1;
        self.runs[parent].child_xor ^= id;
    }

    /// Gives the place of `old` below its parent to `new`, which begins with the same page.
    pub fn replace_child(&mut self, old: u32, new: u32) {
        let (hash, parent) = (self.runs[old].hash, self.runs[old].parent);
        match self.children.find_mut(hash, |&other| other == old) {
            Some(entry) => *entry = new,
            None => unreachable!("each run but a root stands in the child table"),
        }
        self.runs[new].hash = hash;
        self.runs[new].parent = parent;
        self.runs[parent].child_xor ^= old ^ new;
    }
}

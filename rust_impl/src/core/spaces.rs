//! Spaces: for each namespace with pages one root, and the heap of what can be evicted below it.

use std::sync::Arc;

use super::hashing::{Digest, namespace_seed};
use super::node::{Detail, Run};
use super::queue::Queue;
use super::slab::Entry;
use super::tree::Tree;
use super::{NIL, NoMemory};

/// A namespace other than the default one, which has neither part. Two are equal if and only if their pairs are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Namespace {
    pub extra_key: Option<Box<str>>,
    pub cache_salt: Option<Box<str>>,
}

/// Exists while it has pages.
pub struct Space {
    pub namespace: Option<Arc<Namespace>>,
    pub root: u32,
    /// What stands before the digest of a first page.
    pub seed: Option<Digest>,
    pub candidates: Queue,
}

impl Default for Space {
    fn default() -> Self {
        Self { namespace: None, root: NIL, seed: None, candidates: Queue::new() }
    }
}

impl Entry for Space {
    fn link(&mut self) -> &mut u32 {
        // A vacant space is told by its missing root, so its link stands elsewhere.
        self.candidates.link()
    }
}

impl Tree {
    #[inline]
    pub fn space(&self, namespace: &Option<Arc<Namespace>>) -> Option<u32> {
        match namespace {
            None => (self.default_space != NIL).then_some(self.default_space),
            Some(name) => self.named_spaces.get(name).copied(),
        }
    }

    pub fn reserve_space(&mut self) -> Result<(), NoMemory> {
        self.spaces.reserve(1)?;
        self.named_spaces.try_reserve(1)?;
        self.space_positions.reserve(1)?;
        self.ranked_spaces.reserve(1)
    }

    /// The space of that namespace, made if it does not exist. The caller has reserved a space and a run.
    pub fn space_or_new(&mut self, namespace: &Option<Arc<Namespace>>) -> u32 {
        if let Some(space) = self.space(namespace) {
            return space;
        }
        let root = self.new_run(Run::default(), Detail::default());
        let seed = namespace.as_deref().map(namespace_seed);
        let space = Space { namespace: namespace.clone(), root, seed, candidates: Queue::new() };
        let id = self.spaces.insert(space);
        self.details[root].space = id;
        self.space_positions.set(id, NIL);
        match namespace {
            None => self.default_space = id,
            Some(name) => {
                self.named_spaces.insert(name.clone(), id);
            }
        }
        id
    }

    /// Ends a space whose last page is gone.
    pub fn drop_space(&mut self, id: u32) {
        let space = self.spaces.remove(id);
        self.heap_bytes -= space.candidates.bytes();
        self.runs.remove(space.root);
        match space.namespace {
            None => self.default_space = NIL,
            Some(name) => {
                self.named_spaces.remove(&name);
            }
        }
    }
}

//! Births and handles: what names a page for ever.
//!
//! A birth is the pages that one insert made: one chain, cut at its deep end by evictions. (Tick, depth) names a page,
//! since an insert makes at most one page at each depth and no tick comes twice.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::slab::Entry;
use super::spaces::Namespace;
use super::tree::Tree;
use super::{Failure, NIL};

pub struct Birth {
    /// Low and high half: together with the anchor that is 12 bytes, not 16.
    tick: [u32; 2],
    /// The run that holds the deepest page of the birth that is left.
    pub anchor: u32,
}

impl Birth {
    pub const fn new(tick: u64, anchor: u32) -> Self {
        Self { tick: [tick as u32, (tick >> 32) as u32], anchor }
    }

    pub const fn tick(&self) -> u64 {
        (self.tick[1] as u64) << 32 | self.tick[0] as u64
    }
}

impl Default for Birth {
    /// Tick 0 belongs to no insert: a vacant entry answers to no handle.
    fn default() -> Self {
        Self::new(0, NIL)
    }
}

impl Entry for Birth {
    fn link(&mut self) -> &mut u32 {
        &mut self.anchor
    }
}

/// Names a page, or (depth 0) the root of a namespace. The tree does not know which handles exist.
#[derive(Debug, Clone)]
pub struct Handle {
    /// None is the default namespace.
    namespace: Option<Arc<Namespace>>,
    /// Of a page the tick of its birth, of a root the epoch.
    tick: u64,
    depth: usize,
    /// Where the birth stood in its slab; `tick` tells whether it still does.
    birth: u32,
}

impl Handle {
    /// Of no tree: for a variable that a call will write.
    pub const fn nowhere() -> Self {
        Self { namespace: None, tick: u64::MAX, depth: 0, birth: NIL }
    }

    pub const fn depth(&self) -> usize {
        self.depth
    }

    pub const fn is_root(&self) -> bool {
        self.depth == 0
    }

    pub const fn namespace(&self) -> &Option<Arc<Namespace>> {
        &self.namespace
    }
}

impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        let same = self.tick == other.tick && self.depth == other.depth;
        same && (!self.is_root() || self.namespace == other.namespace)
    }
}

impl Eq for Handle {}

impl Hash for Handle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.tick, self.depth).hash(state);
        if self.is_root() {
            self.namespace.hash(state);
        }
    }
}

impl Tree {
    /// The handle of the page of `run` that ends at `depth`; depth 0 is a root.
    #[inline]
    pub fn handle(&self, run: u32, depth: usize) -> Handle {
        self.handle_in(run, depth, self.spaces[self.details[run].space].namespace.clone())
    }

    /// The same where the namespace of the run is known.
    #[inline]
    pub fn handle_in(&self, run: u32, depth: usize, namespace: Option<Arc<Namespace>>) -> Handle {
        if depth == 0 {
            return self.root_handle(namespace);
        }
        let mark = &self.marks[self.segment(run, depth)];
        Handle { namespace, tick: mark.created, depth, birth: mark.birth }
    }

    pub fn root_handle(&self, namespace: Option<Arc<Namespace>>) -> Handle {
        Handle { namespace, tick: self.epoch, depth: 0, birth: NIL }
    }

    /// The run and depth of a page that is cached; None for a root whose space has no pages. O(runs of its birth that
    /// lie below it).
    pub fn locate(&self, handle: &Handle) -> Result<Option<(u32, usize)>, Failure> {
        if handle.is_root() {
            if handle.tick != self.epoch {
                return Err(Failure::Stale);
            }
            return Ok(self.space(&handle.namespace).map(|space| (self.spaces[space].root, 0)));
        }
        let birth = self.births.get(handle.birth).filter(|birth| birth.tick() == handle.tick).ok_or(Failure::Stale)?;
        let mut run = birth.anchor;
        if handle.depth > self.runs[run].end() {
            return Err(Failure::Stale);
        }
        if handle.depth > self.runs[run].start() {
            // Below the deepest page of the birth, the anchor may hold pages of later ones.
            let there = self.marks[self.segment(run, handle.depth)].birth == handle.birth;
            return if there { Ok(Some((run, handle.depth))) } else { Err(Failure::Stale) };
        }
        while handle.depth <= self.runs[run].start() {
            run = self.runs[run].parent;
        }
        Ok(Some((run, handle.depth)))
    }

    /// `locate` for a page, of which it is known that it is none of a root.
    pub fn locate_page(&self, handle: &Handle) -> Result<(u32, usize), Failure> {
        self.locate(handle)?.ok_or(Failure::Stale)
    }
}

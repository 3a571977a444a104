//! A run: a compressed chain of pages, the tree's own node. What a walk needs of it, and the rest.

use super::NIL;
use super::slab::Entry;
use super::window::{SlotStart, TokenStart};

/// Covers the depths (start, end]. The root of a space is a run without pages, marks and parent. Half a cache line.
#[repr(align(32))]
pub struct Run {
    /// With `len` and the detail's `slots` and `generation` this makes the run's window.
    pub tokens: TokenStart,
    pub len: u32,
    pub start: u32,
    pub parent: u32,
    /// The deepest mark; each leads to the next one above. NIL for a root.
    pub marks: u32,
    pub children: u32,
    /// XOR of the ids of the children: of an only child, its id.
    pub child_xor: u32,
}

/// What a walk does not look at. Packed: its one address would round it up to a multiple of its own size.
#[repr(C, packed(4))]
pub struct Detail {
    pub slots: SlotStart,
    pub generation: u32,
    /// Seeded hash of (parent, first page): the run's place in the child table.
    pub hash: u32,
    /// Pages down to this depth are locked; `start` if none is. Locked pages are always a prefix of a run.
    pub locked_end: u32,
    pub space: u32,
    /// Children with a locked page.
    pub locked_children: u32,
    /// Digests of the first pages, NIL if there are none.
    pub digests: u32,
    /// Neighbours among the runs that have a window in the same generation of spans.
    pub previous_in_generation: u32,
    pub next_in_generation: u32,
    /// Where it stands among the candidates for eviction; `queue` says how.
    pub before: u32,
    pub after: u32,
    pub mark_count: u16,
    /// How many runs up from here may be waiting to become one with it; `merge` says when.
    pub chain: u16,
}

impl Run {
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    pub const fn start(&self) -> usize {
        self.start as usize
    }

    pub const fn end(&self) -> usize {
        self.start as usize + self.len as usize
    }

    pub const fn is_root(&self) -> bool {
        self.parent == NIL
    }

    /// Of no run: even a root has children.
    pub const fn is_vacant(&self) -> bool {
        self.len == 0 && self.children == 0
    }

    /// Neither vacant nor a root.
    pub const fn has_pages(&self) -> bool {
        self.len > 0
    }
}

impl Default for Run {
    fn default() -> Self {
        Self { tokens: TokenStart::default(), len: 0, start: 0, parent: NIL, marks: NIL, children: 0, child_xor: 0 }
    }
}

impl Entry for Run {
    fn link(&mut self) -> &mut u32 {
        &mut self.marks
    }
}

impl Default for Detail {
    fn default() -> Self {
        Self {
            slots: SlotStart::default(),
            generation: NIL,
            hash: 0,
            locked_end: 0,
            space: NIL,
            locked_children: 0,
            digests: NIL,
            previous_in_generation: NIL,
            next_in_generation: NIL,
            before: super::queue::OUTSIDE,
            after: NIL,
            mark_count: 0,
            chain: 0,
        }
    }
}

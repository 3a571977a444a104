//! A run: a compressed chain of pages, the tree's own node.

use super::NIL;
use super::span::Window;

/// Covers the depths (start, end]. The root of a space is a run without pages, marks and parent.
pub struct Run {
    pub parent: u32,
    pub space: u32,
    /// Seeded hash of (parent, first page): the run's place in the child table.
    pub hash: u64,
    pub start: usize,
    pub window: Window,
    /// Pages down to this depth are locked; `start` if none is. Locked pages are always a prefix of a run.
    pub locked_end: usize,
    /// The deepest mark; each leads to the next one above. NIL for a root.
    pub marks: u32,
    pub mark_count: u32,
    pub children: u32,
    /// XOR of the ids of the children: of an only child, its id.
    pub child_xor: u32,
    /// Children with a locked page.
    pub locked_children: u32,
    /// Digests of the first pages, NIL if there are none.
    pub digests: u32,
    /// Neighbours among the runs that have a window in the same generation of spans.
    pub previous_in_generation: u32,
    pub next_in_generation: u32,
}

impl Run {
    pub const fn end(&self) -> usize {
        self.start + self.window.len()
    }

    pub const fn is_root(&self) -> bool {
        self.parent == NIL
    }

    pub const fn only_child(&self) -> Option<u32> {
        if self.children == 1 { Some(self.child_xor) } else { None }
    }

    pub const fn has_lock(&self) -> bool {
        self.locked_end > self.start
    }
}

impl Default for Run {
    fn default() -> Self {
        Self {
            parent: NIL,
            space: NIL,
            hash: 0,
            start: 0,
            window: Window::default(),
            locked_end: 0,
            marks: NIL,
            mark_count: 0,
            children: 0,
            child_xor: 0,
            locked_children: 0,
            digests: NIL,
            previous_in_generation: NIL,
            next_in_generation: NIL,
        }
    }
}

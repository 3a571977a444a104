//! Marks: what the calls that ended at a page wrote there. A page's own values are those of the marks at and below it:
//! maximum, maximum, sum and sum.

use super::config::Policy;
use super::slab::Entry;
use super::tree::Tree;
use super::{NIL, NoMemory};

/// Closes a segment of its run: the pages from the mark above (or the run's start) down to `end`. Half a cache line.
#[repr(align(32))]
pub struct Mark {
    pub last: u64,
    /// The birth of these pages: its tick, and where it stands in its slab.
    pub created: u64,
    pub birth: u32,
    pub end: u32,
    pub locks: u32,
    /// The mark above in the same run.
    pub above: u32,
}

/// What a mark says where the policy ranks by it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    pub priority: i64,
    /// Negative where an insert took its hit back (`inserted_len`); a page's sum never is.
    pub hits: i64,
}

impl Default for Mark {
    /// A mark that says nothing.
    fn default() -> Self {
        Self { last: 0, created: 0, birth: NIL, end: 0, locks: 0, above: NIL }
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self { priority: i64::MIN, hits: 0 }
    }
}

impl Entry for Mark {
    fn link(&mut self) -> &mut u32 {
        &mut self.above
    }
}

impl Mark {
    pub const fn end(&self) -> usize {
        self.end as usize
    }
}

/// What a call writes at the page where it ended.
#[derive(Clone, Copy)]
pub struct Note {
    pub last: u64,
    pub priority: i64,
    pub hits: i64,
}

impl Note {
    /// What is left of it if only the ranks of that policy matter.
    pub const fn ranked(self, policy: Policy) -> Self {
        Self {
            last: if policy.ranks_by_last() { self.last } else { 0 },
            priority: if policy.ranks_by_priority() { self.priority } else { i64::MIN },
            hits: if policy.ranks_by_hits() { self.hits } else { 0 },
        }
    }
}

impl Tree {
    /// Marks have weights only where the policy asks for them.
    pub fn weight(&self, mark: u32) -> Weight {
        if self.config.policy.has_weights() { self.weights[mark] } else { Weight::default() }
    }

    /// The caller has reserved a mark.
    pub fn new_mark(&mut self, mark: Mark) -> u32 {
        let id = self.marks.insert(mark);
        if self.config.policy.has_weights() {
            self.weights.set(id, Weight::default());
        }
        id
    }

    pub fn write(&mut self, mark: u32, note: Note) {
        let written = &mut self.marks[mark];
        written.last = written.last.max(note.last);
        if self.config.policy.has_weights() {
            let weight = &mut self.weights[mark];
            weight.priority = weight.priority.max(note.priority);
            weight.hits += note.hits;
        }
    }

    /// Takes away a mark whose page is gone; `into`, if there is one, takes over what it said.
    pub fn fold(&mut self, gone: u32, into: u32) {
        let weight = self.weight(gone);
        let mark = self.marks.remove(gone);
        if into != NIL {
            self.write(into, Note { last: mark.last, priority: weight.priority, hits: weight.hits });
            self.marks[into].locks += mark.locks;
        }
    }

    /// Whether `mark` says nothing that `below`, the next mark of the path, does not say as well.
    fn is_dispensable_above(&self, mark: u32, below: u32) -> bool {
        let (mark_weight, below_weight) = (self.weight(mark), self.weight(below));
        let (mark, below) = (&self.marks[mark], &self.marks[below]);
        mark.birth == below.birth
            && mark.locks == 0
            && mark.last <= below.last
            && mark_weight.hits == 0
            && mark_weight.priority <= below_weight.priority
    }

    /// The mark whose segment holds the page that ends at `depth`, for start < depth <= end of the run.
    #[inline]
    pub fn segment(&self, run: u32, depth: usize) -> u32 {
        let mut mark = self.runs[run].marks;
        loop {
            let above = self.marks[mark].above;
            if above == NIL || self.marks[above].end() < depth {
                return mark;
            }
            mark = above;
        }
    }

    /// The mark that ends at `depth`, made neutral if there is none. The caller has reserved room for it and calls
    /// `limit_marks` in the end.
    pub fn mark_at(&mut self, run: u32, depth: usize) -> u32 {
        let below = self.segment(run, depth);
        if self.marks[below].end() == depth {
            return below;
        }
        let Mark { birth, created, above, .. } = self.marks[below];
        let mark = self.new_mark(Mark { end: depth as u32, birth, created, above, ..Mark::default() });
        self.marks[below].above = mark;
        self.details[run].mark_count += 1;
        mark
    }

    /// Writes at the page that ends at `depth`, keeping what the policy ranks by. Nothing at a root. Whether other marks
    /// became dispensable, so that the run may be merged with the one above it.
    pub fn write_at(&mut self, run: u32, depth: usize, note: Note) -> bool {
        let note = note.ranked(self.config.policy);
        if depth == 0 || (note.last == 0 && note.priority == i64::MIN && note.hits == 0) {
            return false;
        }
        let mark = self.mark_at(run, depth);
        self.write(mark, note);
        let pruned = self.prune_above(run, mark);
        if mark == self.runs[run].marks {
            self.refresh_candidate(run);
        }
        self.limit_marks(run);
        pruned
    }

    /// Drops the marks above `mark` that say nothing which it does not say as well. Whether there were any.
    pub fn prune_above(&mut self, run: u32, mark: u32) -> bool {
        let mut pruned = false;
        loop {
            let above = self.marks[mark].above;
            if above == NIL || !self.is_dispensable_above(above, mark) {
                return pruned;
            }
            self.marks[mark].above = self.marks[above].above;
            self.marks.remove(above);
            self.details[run].mark_count -= 1;
            pruned = true;
        }
    }

    /// The highest mark of a run.
    pub fn top_mark(&self, run: u32) -> u32 {
        let mut top = self.runs[run].marks;
        while self.marks[top].above != NIL {
            top = self.marks[top].above;
        }
        top
    }

    /// How many marks two neighbouring runs would have as one.
    pub fn merged_mark_count(&self, upper: u32, lower: u32) -> usize {
        let top = self.top_mark(lower);
        let mut left = self.details[upper].mark_count;
        let mut mark = self.runs[upper].marks;
        while mark != NIL && self.is_dispensable_above(mark, top) {
            left -= 1;
            mark = self.marks[mark].above;
        }
        usize::from(left + self.details[lower].mark_count)
    }

    /// Splits a run that has too many marks, about in the middle of them. The caller has reserved a run and a mark. If
    /// there is no memory for its digests, the run stays whole until the next time.
    pub fn limit_marks(&mut self, run: u32) {
        let count = usize::from(self.details[run].mark_count);
        if count <= self.config.limits.marks {
            return;
        }
        let mut mark = self.runs[run].marks;
        for _ in 0..count / 2 {
            mark = self.marks[mark].above;
        }
        let depth = self.marks[mark].end();
        let _ = self.split(run, depth);
    }

    /// Room for everything that a single write can make, so that it cannot fail half-way.
    #[inline]
    pub fn reserve(&mut self, writes: usize) -> Result<(), NoMemory> {
        // A write makes a mark and may split a run (a run and a mark); an insert adds one run and one split of its own.
        self.runs.reserve(writes + 4)?;
        self.details.reserve(writes + 4)?;
        self.marks.reserve(2 * writes + 4)?;
        if self.config.policy.has_weights() {
            self.weights.reserve(2 * writes + 4)?;
        }
        self.births.reserve(1)?;
        self.digests.reserve(writes + 4)?;
        self.children.reserve(writes + 4)
    }
}

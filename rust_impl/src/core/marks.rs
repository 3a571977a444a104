//! Marks: what the calls that ended at a page wrote there. A page's own values are those of the marks at and below it:
//! maximum, maximum, sum and sum.

use super::config::Policy;
use super::tree::Tree;
use super::{NIL, NoMemory};

/// Closes a segment of its run: the pages from the mark above (or the run's start) down to `end`.
pub struct Mark {
    pub end: usize,
    pub last: u64,
    pub priority: i64,
    /// Negative where an insert took its hit back (`inserted_len`); a page's sum never is.
    pub hits: i64,
    pub locks: u32,
    pub birth: u32,
    /// The mark above in the same run.
    pub above: u32,
}

impl Default for Mark {
    /// A mark that says nothing.
    fn default() -> Self {
        Self { end: 0, last: 0, priority: i64::MIN, hits: 0, locks: 0, birth: NIL, above: NIL }
    }
}

impl Mark {
    pub fn write(&mut self, note: Note) {
        self.last = self.last.max(note.last);
        self.priority = self.priority.max(note.priority);
        self.hits += note.hits;
    }

    /// Says nothing that `below`, the next mark in the same run, does not say as well.
    fn is_dispensable_above(&self, below: &Mark) -> bool {
        self.birth == below.birth
            && self.locks == 0
            && self.hits == 0
            && self.last <= below.last
            && self.priority <= below.priority
    }

    /// Takes over what a mark says whose page is gone.
    pub fn fold(&mut self, below: &Mark) {
        self.write(Note { last: below.last, priority: below.priority, hits: below.hits });
        self.locks += below.locks;
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
    /// The mark whose segment holds the page that ends at `depth`, for start < depth <= end of the run.
    pub fn segment(&self, run: u32, depth: usize) -> u32 {
        let mut mark = self.runs[run].marks;
        loop {
            let above = self.marks[mark].above;
            if above == NIL || self.marks[above].end < depth {
                return mark;
            }
            mark = above;
        }
    }

    /// The mark that ends at `depth`, made neutral if there is none. The caller has reserved room for it and calls
    /// `limit_marks` in the end.
    pub fn mark_at(&mut self, run: u32, depth: usize) -> u32 {
        let below = self.segment(run, depth);
        if self.marks[below].end == depth {
            return below;
        }
        let Mark { birth, above, .. } = self.marks[below];
        let mark = self.marks.insert(Mark { end: depth, birth, above, ..Mark::default() });
        self.marks[below].above = mark;
        self.runs[run].mark_count += 1;
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
        self.marks[mark].write(note);
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
            if above == NIL || !self.marks[above].is_dispensable_above(&self.marks[mark]) {
                return pruned;
            }
            self.marks[mark].above = self.marks[above].above;
            self.marks.remove(above);
            self.runs[run].mark_count -= 1;
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
        let top = &self.marks[self.top_mark(lower)];
        let mut left = self.runs[upper].mark_count;
        let mut mark = self.runs[upper].marks;
        while mark != NIL && self.marks[mark].is_dispensable_above(top) {
            left -= 1;
            mark = self.marks[mark].above;
        }
        (left + self.runs[lower].mark_count) as usize
    }

    /// Splits a run that has too many marks, about in the middle of them. The caller has reserved a run and a mark. If
    /// there is no memory for its digests, the run stays whole until the next time.
    pub fn limit_marks(&mut self, run: u32) {
        let count = self.runs[run].mark_count as usize;
        if count <= self.config.limits.marks {
            return;
        }
        let mut mark = self.runs[run].marks;
        for _ in 0..count / 2 {
            mark = self.marks[mark].above;
        }
        let depth = self.marks[mark].end;
        let _ = self.split(run, depth);
    }

    /// Room for everything that a single write can make, so that it cannot fail half-way.
    pub fn reserve(&mut self, writes: usize) -> Result<(), NoMemory> {
        // A write makes a mark and may split a run (a run and a mark); an insert adds one run and one split of its own.
        self.runs.reserve(writes + 4)?;
        self.marks.reserve(2 * writes + 4)?;
        self.births.reserve(1)?;
        self.digests.reserve(writes + 4)?;
        self.reserve_children(writes + 4)?;
        self.reserve_positions(writes + 4)
    }
}

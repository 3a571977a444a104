//! Merging two runs that no branch parts any more, and moving windows out of sparse generations.

use super::NIL;
use super::log::{Kind, note};
use super::node::Detail;
use super::tree::Tree;
use super::window::Window;

/// Generations copied out after one operation, so that its cost stays bounded.
const COMPACTED_AT_ONCE: usize = 2;

/// Runs of a size class that make one of the next.
const CHAIN: u16 = 8;

/// Runs of one class differ at most by the factor `CHAIN`.
const fn size_class(units: usize) -> u32 {
    units.ilog2() / CHAIN.ilog2()
}

impl Tree {
    /// Makes `id` one with the runs above it as far as they have no other child. It keeps its identity.
    ///
    /// Windows that lie side by side join for nothing. Others are copied, but only if the upper one is not longer than
    /// twice the lower.
    pub fn merge_upwards(&mut self, id: u32) {
        while let Some(upper) = self.mergeable_above(id) {
            if !self.merge_windows(upper, id) {
                return;
            }
            self.absorb(upper, id);
        }
    }

    /// After `id` was hung below a run that had no child: a sequence that grows by turns stands in a chain of runs. Not
    /// each turn is copied at once: only when `CHAIN` runs of the same size class (or smaller ones below) have come
    /// together they become one, of the next class. So a token is copied once for each class that it passes, and a path
    /// without branches stands in at most `CHAIN` runs of each class.
    pub fn merge_chain(&mut self, id: u32) {
        let upper = self.runs[id].parent;
        if self.runs[upper].is_root() || self.only_child(upper) != Some(id) {
            self.details[id].chain = 1;
            return;
        }
        loop {
            let upper = self.runs[id].parent;
            let continues = !self.runs[upper].is_root()
                && self.only_child(upper) == Some(id)
                && size_class(self.runs[upper].len()) <= size_class(self.runs[id].len());
            self.details[id].chain = if continues { self.details[upper].chain.saturating_add(1) } else { 1 };
            if self.details[id].chain < CHAIN || !self.merge_many(id) {
                return;
            }
        }
    }

    /// Makes one run of `id` and the runs above it that count as its chain. False if there is nothing to merge.
    fn merge_many(&mut self, id: u32) -> bool {
        let mut uppers = [NIL; CHAIN as usize];
        let mut count = 0;
        let mut marks = usize::from(self.details[id].mark_count);
        let mut run = id;
        while count + 1 < usize::from(self.details[id].chain).min(uppers.len()) {
            let upper = self.runs[run].parent;
            marks += usize::from(self.details[upper].mark_count);
            if self.runs[upper].is_root()
                || self.only_child(upper) != Some(run)
                || marks > self.config.limits.merged_marks
            {
                break;
            }
            uppers[count] = upper;
            count += 1;
            run = upper;
        }
        let uppers = &uppers[..count];
        let path = uppers.iter().rev().copied().chain([id]);
        let windows: [Option<Window>; CHAIN as usize] = {
            let mut windows = path.map(|run| self.window(run));
            std::array::from_fn(|_| windows.next())
        };
        if count == 0 || self.reserve_merged_digests(uppers, id).is_err() {
            return false;
        }
        let Ok(joined) = self.spans.store_joined(windows.into_iter().flatten(), false) else { return false };
        let mut below = self.runs[id].len();
        for &upper in uppers {
            note(Kind::Merge, self.runs[upper].len(), below);
            below += self.runs[upper].len();
        }
        for &run in uppers.iter().chain([&id]) {
            self.leave_generation(run);
            self.spans.free(self.window(run));
        }
        self.set_window(id, joined);
        self.join_generation(id);
        for &upper in uppers {
            self.absorb(upper, id);
        }
        true
    }

    /// The run above `id`, if both can be one run.
    fn mergeable_above(&mut self, id: u32) -> Option<u32> {
        let upper = self.runs[id].parent;
        let can = upper != NIL
            && !self.runs[upper].is_root()
            && self.only_child(upper) == Some(id)
            && self.merged_mark_count(upper, id) <= self.config.limits.merged_marks
            && self.reserve_merged_digests(&[upper], id).is_ok();
        can.then_some(upper)
    }

    /// False if the windows stay apart: too long a copy, or no memory for it.
    fn merge_windows(&mut self, upper: u32, lower: u32) -> bool {
        let (above, mut below) = (self.window(upper), self.window(lower));
        if self.spans.adjacent(&above, &below) {
            note(Kind::Merge, above.len(), below.len());
            self.leave_generation(upper);
            self.spans.join_front(above, &mut below);
            self.set_window(lower, below);
            return true;
        }
        if above.len() / 2 > below.len() {
            return false;
        }
        let Ok(joined) = self.spans.store_joined([above, below].into_iter(), false) else { return false };
        note(Kind::Merge, above.len(), below.len());
        self.leave_generation(upper);
        self.leave_generation(lower);
        self.spans.free(above);
        self.spans.free(below);
        self.set_window(lower, joined);
        self.join_generation(lower);
        true
    }

    /// Everything but the windows: place, marks, births, locks and digests of `upper` go to `lower`.
    fn absorb(&mut self, upper: u32, lower: u32) {
        self.unlink_child(lower);
        self.replace_child(upper, lower);
        // With a locked page in the lower run all of the upper one is locked.
        if !self.has_lock(lower) {
            self.details[lower].locked_end = self.details[upper].locked_end;
        }
        self.runs[lower].start = self.runs[upper].start;
        self.merge_digests(upper, lower);
        let top = self.top_mark(lower);
        self.marks[top].above = self.runs[upper].marks;
        self.details[lower].mark_count += self.details[upper].mark_count;
        let mut mark = self.runs[upper].marks;
        while mark != NIL {
            let birth = self.marks[mark].birth;
            if self.births[birth].anchor == upper {
                self.births[birth].anchor = lower;
            }
            mark = self.marks[mark].above;
        }
        self.details[lower].chain = 0;
        note(Kind::Gone, self.runs[upper].start(), 0);
        self.runs.remove(upper);
        self.prune_above(lower, top);
    }

    /// Copies what is left in a few sparse generations into the current one, which frees them.
    pub fn compact_some(&mut self) {
        for _ in 0..COMPACTED_AT_ONCE {
            let Some(generation) = self.spans.take_sparse() else { return };
            let mut run = self.spans.first_run(generation);
            let (mut copied, written) = (0, self.spans.units_written(generation));
            while run != NIL {
                let next = self.details[run].next_in_generation;
                let old = self.window(run);
                let Ok(moved) = self.spans.store_joined([old].into_iter(), true) else { return };
                copied += old.len();
                self.leave_generation(run);
                self.spans.free(old);
                self.set_window(run, moved);
                self.join_generation(run);
                run = next;
            }
            note(Kind::Copy, copied, written);
        }
    }

    /// Enters a run into the list of its generation.
    pub fn join_generation(&mut self, id: u32) {
        let generation = self.details[id].generation;
        let next = self.spans.first_run(generation);
        self.details[id].previous_in_generation = NIL;
        self.details[id].next_in_generation = next;
        if next != NIL {
            self.details[next].previous_in_generation = id;
        }
        self.spans.set_first_run(generation, id);
    }

    /// Takes it out, before its window goes.
    pub fn leave_generation(&mut self, id: u32) {
        let Detail { previous_in_generation: previous, next_in_generation: next, generation, .. } = self.details[id];
        if next != NIL {
            self.details[next].previous_in_generation = previous;
        }
        if previous != NIL {
            self.details[previous].next_in_generation = next;
        } else {
            self.spans.set_first_run(generation, next);
        }
    }
}

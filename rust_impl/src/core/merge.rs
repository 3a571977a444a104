//! Merging two runs that no branch parts any more, and moving windows out of sparse generations.

use super::NIL;
use super::span::Spans;
use super::tree::Tree;

/// Generations copied out after one operation, so that its cost stays bounded.
const COMPACTED_AT_ONCE: usize = 2;

impl Tree {
    /// Makes `id` one with the runs above it as far as they have no other child. It keeps its identity.
    ///
    /// Windows that lie side by side join for nothing. Others are copied, but only if the upper one is not longer than
    /// twice the lower: so a sequence that grows by turns is copied O(log n) times a token and stands in O(log n) runs.
    pub fn merge_upwards(&mut self, id: u32) {
        loop {
            let upper = self.runs[id].parent;
            if upper == NIL || self.runs[upper].is_root() || self.runs[upper].only_child() != Some(id) {
                return;
            }
            if self.merged_mark_count(upper, id) > self.config.limits.merged_marks
                || self.reserve_merged_digests(upper, id).is_err()
                || !self.merge_windows(upper, id)
            {
                return;
            }
            self.absorb(upper, id);
        }
    }

    /// False if the windows stay apart: too long a copy, or no memory for it.
    fn merge_windows(&mut self, upper: u32, lower: u32) -> bool {
        let (above, below) = (&self.runs[upper].window, &self.runs[lower].window);
        if Spans::adjacent(above, below) {
            self.leave_generation(upper);
            let above = std::mem::take(&mut self.runs[upper].window);
            self.spans.join_front(above, &mut self.runs[lower].window);
            return true;
        }
        if above.len() / 2 > below.len() {
            return false;
        }
        let Ok(joined) = self.spans.store_joined(above, below) else { return false };
        self.leave_generation(upper);
        self.leave_generation(lower);
        let above = std::mem::take(&mut self.runs[upper].window);
        let below = std::mem::replace(&mut self.runs[lower].window, joined);
        self.spans.free(above);
        self.spans.free(below);
        self.join_generation(lower);
        true
    }

    /// Everything but the windows: place, marks, births, locks and digests of `upper` go to `lower`.
    fn absorb(&mut self, upper: u32, lower: u32) {
        self.unlink_child(lower);
        self.replace_child(upper, lower);
        // With a locked page in the lower run all of the upper one is locked.
        if !self.runs[lower].has_lock() {
            self.runs[lower].locked_end = self.runs[upper].locked_end;
        }
        self.runs[lower].start = self.runs[upper].start;
        self.merge_digests(upper, lower);
        let top = self.top_mark(lower);
        self.marks[top].above = self.runs[upper].marks;
        self.runs[lower].mark_count += self.runs[upper].mark_count;
        let mut mark = self.runs[upper].marks;
        while mark != NIL {
            let birth = self.marks[mark].birth;
            if self.births[birth].anchor == upper {
                self.births[birth].anchor = lower;
            }
            mark = self.marks[mark].above;
        }
        self.runs.remove(upper);
        self.prune_above(lower, top);
    }

    /// Copies what is left in a few sparse generations into the current one, which frees them.
    pub fn compact_some(&mut self) {
        for _ in 0..COMPACTED_AT_ONCE {
            let Some(generation) = self.spans.take_sparse() else { return };
            let mut run = self.spans.first_run(generation);
            while run != NIL {
                let next = self.runs[run].next_in_generation;
                let Ok(moved) = self.spans.store_again(&self.runs[run].window) else { return };
                self.leave_generation(run);
                let old = std::mem::replace(&mut self.runs[run].window, moved);
                self.spans.free(old);
                self.join_generation(run);
                run = next;
            }
        }
    }

    /// Enters a run into the list of its generation.
    pub fn join_generation(&mut self, id: u32) {
        let generation = self.runs[id].window.generation();
        let next = self.spans.first_run(generation);
        self.runs[id].previous_in_generation = NIL;
        self.runs[id].next_in_generation = next;
        if next != NIL {
            self.runs[next].previous_in_generation = id;
        }
        self.spans.set_first_run(generation, id);
    }

    /// Takes it out, before its window goes.
    pub fn leave_generation(&mut self, id: u32) {
        let run = &self.runs[id];
        let (previous, next) = (run.previous_in_generation, run.next_in_generation);
        let generation = run.window.generation();
        if next != NIL {
            self.runs[next].previous_in_generation = previous;
        }
        if previous != NIL {
            self.runs[previous].next_in_generation = next;
        } else {
            self.spans.set_first_run(generation, next);
        }
    }
}

//! Splitting a run in two. The lower part keeps its identity, so that its children, its candidate and the births that
//! end in it need no change.

use super::marks::Mark;
use super::node::Run;
use super::tree::Tree;
use super::{NIL, NoMemory};

impl Tree {
    /// Cuts `id` at `depth`, inside of it, and returns the new upper part. The caller has reserved a run and a mark;
    /// without memory for the digests nothing has changed.
    pub fn split(&mut self, id: u32, depth: usize) -> Result<u32, NoMemory> {
        let Run { parent, space, start, locked_end, .. } = self.runs[id];
        let pages = (depth - start) / self.config.page_size;
        let digests_below = self.copy_digests(id, pages)?;
        let front = self.spans.split_front(&mut self.runs[id].window, depth - start);
        let upper = self.new_run(Run {
            parent,
            space,
            start,
            locked_end: locked_end.min(depth),
            window: front,
            locked_children: u32::from(locked_end > depth),
            ..Run::default()
        });
        self.join_generation(upper);
        self.replace_child(id, upper);
        let lower = &mut self.runs[id];
        lower.parent = upper;
        lower.start = depth;
        lower.locked_end = locked_end.max(depth);
        self.link_child(id);
        self.split_marks(id, upper, depth);
        self.split_digests(id, upper, pages, digests_below);
        Ok(upper)
    }

    /// Gives the marks down to `depth` to the upper part, and the births that end there.
    fn split_marks(&mut self, lower: u32, upper: u32, depth: usize) {
        let mut first_below = self.runs[lower].marks;
        let mut kept = 1;
        while self.marks[first_below].above != NIL && self.marks[self.marks[first_below].above].end > depth {
            first_below = self.marks[first_below].above;
            kept += 1;
        }
        let moved = self.runs[lower].mark_count - kept;
        let birth_below = self.marks[first_below].birth;
        let above = std::mem::replace(&mut self.marks[first_below].above, NIL);
        self.runs[lower].mark_count = kept;
        let closed = above != NIL && self.marks[above].end == depth;
        self.runs[upper].mark_count = moved + u32::from(!closed);
        self.runs[upper].marks = if closed {
            above
        } else {
            // The cut goes through a segment: its upper part gets a mark that says nothing.
            self.marks.insert(Mark { end: depth, birth: birth_below, above, ..Mark::default() })
        };
        let mut mark = self.runs[upper].marks;
        while mark != NIL {
            let birth = self.marks[mark].birth;
            // The birth that goes on below keeps its anchor there.
            if birth != birth_below && self.births[birth].anchor == lower {
                self.births[birth].anchor = upper;
            }
            mark = self.marks[mark].above;
        }
    }
}

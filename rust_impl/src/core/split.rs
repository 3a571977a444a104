//! Splitting a run in two. The lower part keeps its identity, so that its children, its candidate and the births that
//! end in it need no change.

use super::key::Key;
use super::log::{Kind, note};
use super::marks::Mark;
use super::node::{Detail, Run};
use super::tree::Tree;
use super::{NIL, NoMemory};

impl Tree {
    /// Cuts `id` at `depth`, inside of it, and returns the new upper part. The caller has reserved a run and a mark;
    /// without memory for the digests nothing has changed.
    pub fn split(&mut self, id: u32, depth: usize) -> Result<u32, NoMemory> {
        let Run { parent, start, .. } = self.runs[id];
        let locked_end = self.locked_end(id);
        let pages = (depth - start as usize) / self.config.page_size;
        let digests_below = self.copy_digests(id, pages)?;
        let mut back = self.window(id);
        let front = self.spans.split_front(&mut back, depth - start as usize);
        let upper = self.new_run(
            Run { parent, start, ..Run::default() },
            Detail {
                space: self.details[id].space,
                locked_end: locked_end.min(depth) as u32,
                locked_children: u32::from(locked_end > depth),
                ..Detail::default()
            },
        );
        self.set_window(upper, front);
        self.join_generation(upper);
        self.replace_child(id, upper);
        self.set_window(id, back);
        self.runs[id].parent = upper;
        self.runs[id].start = depth as u32;
        self.details[id].locked_end = locked_end.max(depth) as u32;
        self.details[id].hash = self.child_hash(upper, Key::Narrow(self.tokens(id)));
        self.link_child(id);
        self.split_marks(id, upper, depth);
        self.split_digests(id, upper, pages, digests_below);
        note(Kind::Made, depth - start as usize, start as usize);
        note(Kind::Split, depth, self.runs[id].len());
        Ok(upper)
    }

    /// Gives the marks down to `depth` to the upper part, and the births that end there.
    fn split_marks(&mut self, lower: u32, upper: u32, depth: usize) {
        let mut first_below = self.runs[lower].marks;
        let mut kept = 1;
        while self.marks[first_below].above != NIL && self.marks[self.marks[first_below].above].end() > depth {
            first_below = self.marks[first_below].above;
            kept += 1;
        }
        let moved = self.details[lower].mark_count - kept;
        let Mark { birth: birth_below, created, .. } = self.marks[first_below];
        let above = std::mem::replace(&mut self.marks[first_below].above, NIL);
        self.details[lower].mark_count = kept;
        let closed = above != NIL && self.marks[above].end() == depth;
        self.details[upper].mark_count = moved + u16::from(!closed);
        self.runs[upper].marks = if closed {
            above
        } else {
            // The cut goes through a segment: its upper part gets a mark that says nothing.
            self.new_mark(Mark { end: depth as u32, birth: birth_below, created, above, ..Mark::default() })
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

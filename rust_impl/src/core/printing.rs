//! The tree for people.

use std::fmt::{self, Write};

use super::text::Text;
use super::tree::Tree;
use super::{NIL, NoMemory};

const SHOWN_TOKENS: usize = 8;

impl Tree {
    /// One line for each run, indented by its place below the root. No recursion; a deep tree is indented to a limit.
    pub fn printed(&self) -> Result<String, NoMemory> {
        const DEEPEST_INDENT: usize = 40;
        // No run knows its children, so they are gathered first, in the order of their parents.
        let mut by_parent: Vec<u32> = Vec::new();
        by_parent.try_reserve_exact(self.runs.len())?;
        by_parent.extend(self.runs.entries().filter(|(_, run)| !run.is_vacant()).map(|(id, _)| id));
        by_parent.sort_unstable_by_key(|&id| (self.runs[id].parent, id));
        let children = |parent: u32| {
            let first = by_parent.partition_point(|&id| self.runs[id].parent < parent);
            by_parent[first..].iter().copied().take_while(move |&id| self.runs[id].parent == parent)
        };
        let mut text = Text::default();
        let mut open: Vec<(u32, usize)> = Vec::new();
        let mut next = (NIL, 0);
        loop {
            let first = open.len();
            for child in children(next.0) {
                open.try_reserve(1)?;
                open.push((child, next.1));
            }
            open[first..].reverse();
            let Some((id, level)) = open.pop() else { return Ok(text.into()) };
            if self.runs[id].is_root() {
                self.print_root(id, &mut text)?;
            } else {
                write!(text, "{:indent$}", "", indent = level.min(DEEPEST_INDENT) * 2)?;
                self.print_run(id, &mut text)?;
            }
            next = (id, level + 1);
        }
    }

    fn print_root(&self, root: u32, text: &mut Text) -> fmt::Result {
        match &self.spaces[self.details[root].space].namespace {
            None => writeln!(text, "root"),
            Some(name) => writeln!(text, "root of ({}, {})", Part(&name.extra_key), Part(&name.cache_salt)),
        }
    }

    fn print_run(&self, id: u32, text: &mut Text) -> fmt::Result {
        let (run, tokens) = (&self.runs[id], self.tokens(id));
        write!(text, "{}–{} [", run.start, run.end())?;
        for (at, token) in tokens.iter().take(SHOWN_TOKENS).enumerate() {
            write!(text, "{}{token}", if at > 0 { ", " } else { "" })?;
        }
        text.write_str(if tokens.len() > SHOWN_TOKENS { ", …]" } else { "]" })?;
        if self.has_lock(id) {
            write!(text, ", locked to {}", self.locked_end(id))?;
        }
        text.write_char('\n')
    }
}

struct Part<'a>(&'a Option<Box<str>>);

impl fmt::Display for Part<'_> {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self.0 {
            None => to.write_str("None"),
            Some(text) => write!(to, "{text:?}"),
        }
    }
}

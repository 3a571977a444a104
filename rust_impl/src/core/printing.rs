//! The tree for people.

use std::fmt::Write;

use super::node::Run;
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
        by_parent.extend(self.runs.entries().filter(|(_, run)| run.space != NIL).map(|(id, _)| id));
        by_parent.sort_unstable_by_key(|&id| (self.runs[id].parent, id));
        let children = |parent: u32| {
            let first = by_parent.partition_point(|&id| self.runs[id].parent < parent);
            by_parent[first..].iter().copied().take_while(move |&id| self.runs[id].parent == parent)
        };
        let mut text = String::new();
        let mut open: Vec<(u32, usize)> = children(NIL).map(|root| (root, 0)).collect();
        open.reverse();
        while let Some((id, level)) = open.pop() {
            text.try_reserve(256)?;
            let run = &self.runs[id];
            let indent = level.min(DEEPEST_INDENT) * 2;
            if run.is_root() {
                let _ = writeln!(text, "{}", self.root_line(run));
            } else {
                let _ = writeln!(text, "{:indent$}{}", "", self.run_line(id));
            }
            let first = open.len();
            for child in children(id) {
                open.try_reserve(1)?;
                open.push((child, level + 1));
            }
            open[first..].reverse();
        }
        Ok(text)
    }

    fn root_line(&self, root: &Run) -> String {
        match &self.spaces[root.space].namespace {
            None => "root".to_owned(),
            Some(name) => format!("root of ({}, {})", part(&name.extra_key), part(&name.cache_salt)),
        }
    }

    fn run_line(&self, id: u32) -> String {
        let (run, tokens) = (&self.runs[id], self.tokens(id));
        let shown: Vec<String> = tokens.iter().take(SHOWN_TOKENS).map(u32::to_string).collect();
        let more = if tokens.len() > SHOWN_TOKENS { ", …" } else { "" };
        let lock = if self.has_lock(id) { format!(", locked to {}", self.locked_end(id)) } else { String::new() };
        format!("{}–{} [{}{more}]{lock}", run.start, run.end(), shown.join(", "))
    }
}

fn part(text: &Option<Box<str>>) -> String {
    text.as_ref().map_or("None".to_owned(), |text| format!("{text:?}"))
}

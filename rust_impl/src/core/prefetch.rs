//! Asking for memory before it is needed.
//!
//! A look-up in a tree larger than the caches waits for one line after the other: table, run, tokens, mark. Those of
//! different keys do not depend on each other, so a group of keys goes ahead step by step and asks for everything that
//! the look-ups themselves will need soon after. Nothing follows from what is seen on the way.
//!
//! Obligation of `unsafe`:
//!
//! O1. A hint may name any address: nothing is read there.

use super::key::Key;
use super::tree::Tree;

/// A tree with fewer bytes of tokens and slots lies in a cache that is near, where going ahead costs more than it saves.
const FAR: usize = 2 << 20;

/// Keys that go ahead together.
pub const GROUP: usize = 32;

/// Runs that each of them passes.
const HOPS: usize = 3;

/// Lines of tokens asked for at once; the processor itself asks for those that follow.
const TOKEN_LINES: usize = 16;
pub const LINE: usize = 64;

/// Loads the cache line of that value, soon.
#[inline(always)]
pub fn line<T>(value: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: O1.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(value.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// A key on its way: the run where it is thought to be, and how many of its units are behind.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    key: Key<'a>,
    run: u32,
    depth: usize,
    hash: u32,
    done: bool,
}

impl Tree {
    /// Goes ahead for keys that begin at the roots of these runs.
    pub fn prefetch_walks<'a>(&self, keys: impl Iterator<Item = (u32, Key<'a>)>) {
        if self.spans.shown_bytes() < FAR {
            return;
        }
        let mut group = [const { None::<Ahead> }; GROUP];
        let mut count = 0;
        for (place, (root, key)) in group.iter_mut().zip(keys) {
            *place = Some(Ahead { key, run: root, depth: 0, hash: 0, done: false });
            count += 1;
        }
        for _ in 0..HOPS {
            let mut moving = false;
            for ahead in group[..count].iter_mut().flatten().filter(|ahead| !ahead.done) {
                let rest = ahead.key.len().saturating_sub(ahead.depth);
                ahead.done = rest < self.config.page_tokens() || self.runs[ahead.run].children == 0;
                if !ahead.done {
                    if self.only_child(ahead.run).is_none() {
                        ahead.hash = self.child_hash(ahead.run, ahead.key.from(ahead.depth));
                        self.children.prefetch(ahead.hash);
                    }
                    moving = true;
                }
            }
            if !moving {
                return;
            }
            for ahead in group[..count].iter_mut().flatten().filter(|ahead| !ahead.done) {
                match self.only_child(ahead.run).or_else(|| self.children.find(ahead.hash).next()) {
                    Some(run) => {
                        ahead.run = run;
                        line(&raw const self.runs[run]);
                    }
                    None => ahead.done = true,
                }
            }
            for ahead in group[..count].iter_mut().flatten().filter(|ahead| !ahead.done) {
                let run = &self.runs[ahead.run];
                ahead.depth += run.len();
                let lines = (run.len() * size_of::<u32>()).div_ceil(LINE).min(TOKEN_LINES);
                let tokens = self.tokens(ahead.run).as_ptr();
                (0..lines).for_each(|at| line(tokens.wrapping_byte_add(at * LINE)));
                line(&raw const self.marks[run.marks]);
            }
        }
    }

    /// Before matches are written at these runs: they, their deepest marks and what a new place among the candidates takes.
    pub fn prefetch_touched(&self, runs: impl Iterator<Item = u32> + Clone) {
        runs.clone().for_each(|run| line(&raw const self.runs[run]));
        runs.clone().for_each(|run| line(&raw const self.marks[self.runs[run].marks]));
        self.prefetch_candidates(runs);
    }

    /// Before runs change their places among the candidates: their details, and those of their neighbours.
    pub fn prefetch_candidates(&self, runs: impl Iterator<Item = u32> + Clone) {
        runs.clone().for_each(|run| line(&raw const self.details[run]));
        runs.for_each(|run| {
            self.neighbours(run).into_iter().flatten().for_each(|run| line(&raw const self.details[run]))
        });
    }
}

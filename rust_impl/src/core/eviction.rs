//! Eviction: of the pages without child and lock the one of smallest rank goes, a whole segment of equals at a time.
//!
//! A run without children that has pages below `locked_end` is a candidate. Candidates stand in a heap for each space,
//! and the spaces in a heap by their smallest rank, so nothing here walks the leaves.

use std::sync::Arc;

use super::config::Policy;
use super::events::Event;
use super::hashing::event_hash;
use super::heap::Rank;
use super::marks::Mark;
use super::spaces::Namespace;
use super::tree::Tree;
use super::{NIL, NoMemory};

/// The slots that an eviction freed: page by page in the order of eviction, in token order within a page.
pub struct Evicted {
    pub slots: Vec<i64>,
}

impl Tree {
    /// The rank of the deepest page of a run without children: its last mark says everything about it.
    pub fn rank(&self, run: u32) -> Rank {
        let mark = &self.marks[self.runs[run].marks];
        let last = mark.last as i64;
        let creation = || self.births[mark.birth].tick as i64;
        match self.config.policy {
            Policy::Lru => (0, last),
            Policy::Lfu => (mark.hits, last),
            Policy::Fifo => (0, creation()),
            Policy::Mru => (0, -last),
            Policy::Filo => (0, -creation()),
            Policy::Priority => (mark.priority, last),
            Policy::Slru => (i64::from(mark.hits >= self.config.slru_threshold), last),
        }
    }

    pub fn is_candidate(&self, run: u32) -> bool {
        let run = &self.runs[run];
        run.children == 0 && run.locked_end < run.end()
    }

    /// Brings the heaps in line with a run that changed. The caller has reserved a candidate in its space.
    pub fn refresh_candidate(&mut self, run: u32) {
        let space = self.runs[run].space;
        let rank = self.is_candidate(run).then(|| self.rank(run));
        let candidates = &mut self.spaces[space].candidates;
        match rank {
            Some(rank) => candidates.set(&mut self.run_positions, run, rank),
            None => candidates.remove(&mut self.run_positions, run),
        }
        self.refresh_space(space);
    }

    fn refresh_space(&mut self, space: u32) {
        match self.spaces[space].candidates.top() {
            Some((rank, _)) => self.ranked_spaces.set(&mut self.space_positions, space, rank),
            None => self.ranked_spaces.remove(&mut self.space_positions, space),
        }
    }

    /// Room for one more candidate of that space.
    pub fn reserve_candidate(&mut self, space: u32) -> Result<(), NoMemory> {
        let candidates = &mut self.spaces[space].candidates;
        self.heap_bytes -= candidates.bytes();
        let reserved = candidates.reserve(1);
        self.heap_bytes += candidates.bytes();
        reserved
    }

    pub fn reserve_positions(&mut self, more: usize) -> Result<(), NoMemory> {
        Ok(self.run_positions.try_reserve(more)?)
    }

    /// Frees pages until at least `units` units are free or no page can go.
    pub fn evict(&mut self, units: u64) -> Result<Evicted, NoMemory> {
        self.evict_from(units, |tree| tree.ranked_spaces.top().map(|(_, space)| space))
    }

    /// The same in one namespace.
    pub fn evict_namespace(&mut self, namespace: &Option<Arc<Namespace>>, units: u64) -> Result<Evicted, NoMemory> {
        self.evict_from(units, |tree| tree.space(namespace))
    }

    fn evict_from(&mut self, units: u64, next_space: impl Fn(&Tree) -> Option<u32>) -> Result<Evicted, NoMemory> {
        self.drain_touches()?;
        let page = self.config.page_size;
        let most = self.total_units - self.protected_units;
        // Everything that can fail comes first.
        let wanted = usize::try_from(units).unwrap_or(usize::MAX).div_ceil(page).saturating_mul(page).min(most);
        let mut slots: Vec<i64> = Vec::new();
        slots.try_reserve_exact(wanted)?;
        let mut hashes: Vec<i64> = Vec::new();
        if self.config.events {
            hashes.try_reserve_exact(wanted / page)?;
            self.events.try_reserve(1)?;
        }
        while slots.len() < wanted {
            let Some(space) = next_space(self) else { break };
            let Some((_, run)) = self.spaces[space].candidates.top() else { break };
            self.evict_tail(run, wanted - slots.len(), &mut slots, &mut hashes);
        }
        self.evicted_units += slots.len() as u64;
        if !hashes.is_empty() {
            self.events.push_back(Event::Removed { hashes });
        }
        if self.runs.len() == 0 && !slots.is_empty() {
            self.release_memory();
        } else {
            self.compact_some();
        }
        if slots.len() < wanted / 2 {
            slots.shrink_to_fit();
        }
        Ok(Evicted { slots })
    }

    /// Frees the last segment of a candidate, or as many of its pages as `wanted` units (whole pages) take.
    fn evict_tail(&mut self, run: u32, wanted: usize, slots: &mut Vec<i64>, hashes: &mut Vec<i64>) {
        let page = self.config.page_size;
        let (start, end) = (self.runs[run].start, self.runs[run].end());
        let mark = self.runs[run].marks;
        let above = self.marks[mark].above;
        let segment_start = if above == NIL { start } else { self.marks[above].end };
        // A mark ends where the locked pages do, so a segment is locked as a whole or not at all.
        let count = (end - segment_start).min(wanted);
        let window_slots = self.spans.slots(&self.runs[run].window);
        for freed in window_slots[end - start - count..].rchunks_exact(page) {
            slots.extend_from_slice(freed);
        }
        if self.config.events {
            let digests = &self.digests[self.runs[run].digests];
            let (kept, all) = ((end - start - count) / page, (end - start) / page);
            hashes.extend(digests[kept..all].iter().rev().map(event_hash));
        }
        self.total_units -= count;
        self.cut_digests(run, (end - start - count) / page);
        if end - count > segment_start {
            self.marks[mark].end -= count;
            self.spans.trim(&mut self.runs[run].window, count);
        } else if above != NIL {
            self.spans.trim(&mut self.runs[run].window, count);
            self.runs[run].marks = above;
            self.runs[run].mark_count -= 1;
            let gone = self.marks.remove(mark);
            self.fold_into(run, &gone);
            self.refresh_candidate(run);
        } else {
            self.remove_run(run);
        }
    }

    /// What a used-up segment said goes to the last mark of `run`, the one above it; so does the end of its birth.
    fn fold_into(&mut self, run: u32, gone: &Mark) {
        let mark = self.runs[run].marks;
        if mark != NIL && self.marks[mark].birth == gone.birth {
            self.births[gone.birth].anchor = run;
        } else {
            self.births.remove(gone.birth);
        }
        if mark != NIL {
            self.marks[mark].fold(gone);
            self.prune_above(run, mark);
        }
    }

    /// Removes a candidate with a single segment, and what its going leaves behind: an empty space, a new candidate
    /// or two runs that can be one.
    fn remove_run(&mut self, id: u32) {
        let space = self.runs[id].space;
        self.spaces[space].candidates.remove(&mut self.run_positions, id);
        self.unlink_child(id);
        self.leave_generation(id);
        let run = self.runs.remove(id);
        self.spans.free(run.window);
        let gone = self.marks.remove(run.marks);
        let parent = run.parent;
        self.fold_into(parent, &gone);
        if self.runs[parent].is_root() {
            self.refresh_space(space);
            if self.runs[parent].children == 0 {
                self.drop_space(space);
            }
            return;
        }
        self.refresh_candidate(parent);
        if let Some(child) = self.runs[parent].only_child() {
            self.merge_upwards(child);
        }
    }
}

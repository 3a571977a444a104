//! Eviction: of the pages without child and lock the one of smallest rank goes, a whole segment of equals at a time.
//!
//! A run without children that has pages below `locked_end` is a candidate. Candidates stand in a queue for each space,
//! and the spaces in a heap by their smallest rank, so nothing here walks the leaves.

use std::mem::MaybeUninit;
use std::sync::Arc;

use super::config::Policy;
use super::events::Event;
use super::hashing::event_hash;
use super::heap::{Places, Rank};
use super::log::{Kind, note};
use super::slab::Column;
use super::spaces::Namespace;
use super::tree::Tree;
use super::{NIL, NoMemory};

/// The slots that an eviction freed: page by page in the order of eviction, in token order within a page.
pub struct Evicted {
    pub slots: Vec<i64>,
}

/// Where they go.
trait Freed: Extend<i64> {
    fn count(&self) -> usize;
}

impl Freed for Vec<i64> {
    fn count(&self) -> usize {
        self.len()
    }
}

/// Memory of somebody else's that has room for all of them.
struct Room<'a> {
    slots: &'a mut [MaybeUninit<i64>],
    count: usize,
}

impl Extend<i64> for Room<'_> {
    #[inline]
    fn extend<T: IntoIterator<Item = i64>>(&mut self, freed: T) {
        for (slot, freed) in self.slots[self.count..].iter_mut().zip(freed) {
            slot.write(freed);
            self.count += 1;
        }
    }
}

impl Freed for Room<'_> {
    fn count(&self) -> usize {
        self.count
    }
}

/// Who asks for `i64::MAX` units or more wants all that can go.
fn tell_if_short(freed: usize, wanted: u64, some_are_left: bool) {
    if (freed as u64) < wanted && wanted < i64::MAX as u64 && some_are_left {
        note(Kind::Short, freed, wanted as usize);
    }
}

impl Places for Column<u32> {
    fn place(&mut self, id: u32, at: usize) {
        self[id] = at as u32;
    }
}

impl Tree {
    /// The rank of the deepest page of a run without children: its last mark says everything about it.
    pub fn rank(&self, run: u32) -> Rank {
        let id = self.runs[run].marks;
        let mark = &self.marks[id];
        let last = mark.last as i64;
        match self.config.policy {
            Policy::Lru => (0, last),
            Policy::Lfu => (self.weight(id).hits, last),
            Policy::Fifo => (0, mark.created as i64),
            Policy::Mru => (0, -last),
            Policy::Filo => (0, -(mark.created as i64)),
            Policy::Priority => (self.weight(id).priority, last),
            Policy::Slru => (i64::from(self.weight(id).hits >= self.config.slru_threshold), last),
        }
    }

    pub fn is_candidate(&self, run: u32) -> bool {
        self.runs[run].children == 0 && self.locked_end(run) < self.runs[run].end()
    }

    /// Brings the queue in line with a run that changed. The caller has reserved a candidate in its space.
    #[inline]
    pub fn refresh_candidate(&mut self, run: u32) {
        // Most runs that change have children, and were no candidates before.
        if self.runs[run].children == 0 || self.is_queued(run) {
            self.requeue(run);
        }
    }

    fn requeue(&mut self, run: u32) {
        let space = self.details[run].space;
        let before = self.spaces[space].candidates.firsts();
        if self.is_candidate(run) {
            self.enqueue(run);
        } else {
            self.dequeue(run);
        }
        // Behind the same first ones nothing changes for the space.
        let after = self.spaces[space].candidates.firsts();
        if before != after || after.contains(&run) {
            self.refresh_space(space);
        }
    }

    fn refresh_space(&mut self, space: u32) {
        let (place, first) = (self.space_positions[space], self.first_candidate(space));
        let (ranked, places) = (&mut self.ranked_spaces, &mut self.space_positions);
        match (first, place) {
            (Some((rank, _)), NIL) => ranked.insert(places, space, rank),
            (Some((rank, _)), place) => ranked.set(places, place as usize, rank),
            (None, NIL) => {}
            (None, place) => {
                ranked.remove(places, place as usize);
                places[space] = NIL;
            }
        }
    }

    /// Room for one more candidate of that space.
    #[inline]
    pub fn reserve_candidate(&mut self, space: u32) -> Result<(), NoMemory> {
        let candidates = &mut self.spaces[space].candidates;
        self.heap_bytes -= candidates.bytes();
        let reserved = candidates.reserve(1);
        self.heap_bytes += candidates.bytes();
        reserved
    }

    /// How many units `evict` frees if `units` are asked for: whole pages, as far as there are.
    #[inline]
    pub fn evictable(&self, units: u64) -> usize {
        let page = self.config.page_size;
        let wanted = usize::try_from(units).unwrap_or(usize::MAX);
        // Short calls notice a division.
        let wanted = if page == 1 { wanted } else { wanted.div_ceil(page).saturating_mul(page) };
        wanted.min(self.total_units - self.protected_units)
    }

    /// Frees pages until at least `units` units are free or no page can go.
    pub fn evict(&mut self, units: u64) -> Result<Evicted, NoMemory> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(self.evictable(units))?;
        self.evict_from_all(units, &mut slots)?;
        Ok(Evicted { slots })
    }

    /// The same, with the slots written to `room`. False, and nothing happens, if that has not just the size of
    /// `evictable`.
    pub fn evict_into(&mut self, units: u64, room: &mut [MaybeUninit<i64>]) -> Result<bool, NoMemory> {
        let wanted = self.evictable(units);
        if room.len() != wanted {
            return Ok(false);
        }
        let mut room = Room { slots: room, count: 0 };
        self.evict_from_all(units, &mut room)?;
        assert_eq!(room.count, wanted, "what is not locked can go");
        Ok(true)
    }

    fn evict_from_all(&mut self, units: u64, slots: &mut impl Freed) -> Result<(), NoMemory> {
        self.evict_from(units, slots, |tree| tree.ranked_spaces.top().map(|(_, space)| space))?;
        tell_if_short(slots.count(), units, self.total_units > 0);
        Ok(())
    }

    /// The same in one namespace.
    pub fn evict_namespace(&mut self, namespace: &Option<Arc<Namespace>>, units: u64) -> Result<Evicted, NoMemory> {
        let mut slots = Vec::new();
        let wanted = self.evictable(units);
        slots.try_reserve_exact(wanted)?;
        self.evict_from(units, &mut slots, |tree| tree.space(namespace))?;
        tell_if_short(slots.len(), units, self.space(namespace).is_some());
        let mut exact = Vec::new();
        // `shrink_to_fit` would abort for want of memory.
        if slots.len() < wanted / 2 && exact.try_reserve_exact(slots.len()).is_ok() {
            exact.extend_from_slice(&slots);
            slots = exact;
        }
        Ok(Evicted { slots })
    }

    /// `slots` has room for all that can go.
    fn evict_from(
        &mut self,
        units: u64,
        slots: &mut impl Freed,
        next_space: impl Fn(&Tree) -> Option<u32>,
    ) -> Result<(), NoMemory> {
        self.drain_touches()?;
        let wanted = self.evictable(units);
        // Everything that can fail comes first.
        let mut hashes: Vec<i64> = Vec::new();
        if self.config.events {
            hashes.try_reserve_exact(wanted / self.config.page_size)?;
            self.events.try_reserve(1)?;
        }
        while slots.count() < wanted {
            let Some(space) = next_space(self) else { break };
            let Some((_, run)) = self.first_candidate(space) else { break };
            // Who is likely to be next, since it is cold.
            if let [_, Some(next)] = self.neighbours(run) {
                self.children.prefetch(self.details[next].hash);
                self.prefetch_slots(next);
            }
            self.evict_tail(run, wanted - slots.count(), slots, &mut hashes);
        }
        let freed = slots.count();
        self.evicted_units += freed as u64;
        if freed > 0 {
            note(Kind::Evict, freed, self.total_units);
        }
        if !hashes.is_empty() {
            self.events.push_back(Event::Removed { hashes });
        }
        if self.runs.len() == 0 && freed > 0 {
            self.release_memory();
        } else {
            self.compact_some();
        }
        Ok(())
    }

    /// Frees the last segment of a candidate, or as many of its pages as `wanted` units (whole pages) take.
    fn evict_tail(&mut self, run: u32, wanted: usize, slots: &mut impl Freed, hashes: &mut Vec<i64>) {
        let page = self.config.page_size;
        let (start, end) = (self.runs[run].start(), self.runs[run].end());
        let mark = self.runs[run].marks;
        let above = self.marks[mark].above;
        let segment_start = if above == NIL { start } else { self.marks[above].end() };
        // A mark ends where the locked pages do, so a segment is locked as a whole or not at all.
        let count = (end - segment_start).min(wanted);
        let freed = self.slots(run).part(end - start - count..end - start);
        freed.append_pages_backwards(page, slots);
        if self.config.events {
            let digests = self.digests_of(run);
            let (kept, all) = ((end - start - count) / page, (end - start) / page);
            hashes.extend(digests[kept..all].iter().rev().map(event_hash));
        }
        self.total_units -= count;
        self.cut_digests(run, end - start - count);
        if end - count > segment_start {
            self.marks[mark].end -= count as u32;
            self.trim(run, count);
        } else if above != NIL {
            self.trim(run, count);
            self.runs[run].marks = above;
            self.details[run].mark_count -= 1;
            self.fold_into(run, mark);
            self.refresh_candidate(run);
        } else {
            self.remove_run(run);
        }
    }

    fn trim(&mut self, run: u32, units: usize) {
        let mut window = self.window(run);
        self.spans.trim(&mut window, units);
        self.set_window(run, window);
    }

    /// What a used-up segment said goes to the last mark of `run`, the one above it; so does the end of its birth.
    fn fold_into(&mut self, run: u32, gone: u32) {
        let mark = self.runs[run].marks;
        let birth = self.marks[gone].birth;
        if mark != NIL && self.marks[mark].birth == birth {
            self.births[birth].anchor = run;
        } else {
            self.births.remove(birth);
        }
        self.fold(gone, mark);
        if mark != NIL {
            self.prune_above(run, mark);
        }
    }

    /// Removes a candidate with a single segment, and what its going leaves behind: an empty space, a new candidate
    /// or two runs that can be one.
    fn remove_run(&mut self, id: u32) {
        let (space, parent, mark) = (self.details[id].space, self.runs[id].parent, self.runs[id].marks);
        self.dequeue(id);
        self.unlink_child(id);
        self.leave_generation(id);
        self.spans.free(self.window(id));
        note(Kind::Gone, self.runs[id].start(), 0);
        self.runs.remove(id);
        self.fold_into(parent, mark);
        if self.runs[parent].is_root() {
            self.refresh_space(space);
            if self.runs[parent].children == 0 {
                self.drop_space(space);
            }
            return;
        }
        self.refresh_candidate(parent);
        self.refresh_space(space);
        if let Some(child) = self.only_child(parent) {
            self.merge_upwards(child);
        }
    }
}

//! Locks: `inc_lock_ref` counts at one mark. What is locked stays a prefix of each run, so only runs that change are
//! visited: a lock stops at the first page that was locked already, a release at the first that stays so.

use super::births::Handle;
use super::tree::Tree;
use super::{Failure, NIL};

impl Tree {
    /// Adds a lock to every page from the node's to the root; returns the units that became protected.
    pub fn inc_lock_ref(&mut self, handle: &Handle) -> Result<usize, Failure> {
        self.drain_touches()?;
        self.reserve(1)?;
        let Some((run, depth)) = self.locate(handle)?.filter(|&(_, depth)| depth > 0) else { return Ok(0) };
        let segment = self.segment(run, depth);
        if self.marks[segment].end() == depth && self.marks[segment].locks == u32::MAX {
            return Err(Failure::TooManyLocks);
        }
        let mark = self.mark_at(run, depth);
        self.marks[mark].locks += 1;
        let newly = self.protect(run, depth);
        self.limit_marks(run);
        Ok(newly)
    }

    /// Takes back one lock of the node's page; returns the units that became evictable.
    pub fn dec_lock_ref(&mut self, handle: &Handle) -> Result<usize, Failure> {
        self.drain_touches()?;
        let Some((run, depth)) = self.locate(handle)?.filter(|&(_, depth)| depth > 0) else { return Ok(0) };
        let mark = self.segment(run, depth);
        if self.marks[mark].end() != depth || self.marks[mark].locks == 0 {
            return Err(Failure::NotLocked);
        }
        self.reserve_candidate(self.details[run].space)?;
        self.marks[mark].locks -= 1;
        let released = if self.marks[mark].locks == 0 { self.release(run) } else { 0 };
        // Without its lock the mark may say no more than the one below it.
        let mut below = self.runs[run].marks;
        while below != mark && self.marks[below].above != mark {
            below = self.marks[below].above;
        }
        self.prune_above(run, below);
        Ok(released)
    }

    fn protect(&mut self, mut run: u32, mut depth: usize) -> usize {
        let mut newly = 0;
        while !self.runs[run].is_root() && self.locked_end(run) < depth {
            let had_lock = self.has_lock(run);
            newly += depth - self.locked_end(run);
            self.details[run].locked_end = depth as u32;
            self.refresh_candidate(run);
            if had_lock {
                break;
            }
            depth = self.runs[run].start();
            run = self.runs[run].parent;
            self.details[run].locked_children += 1;
        }
        self.protected_units += newly;
        newly
    }

    fn release(&mut self, mut run: u32) -> usize {
        let mut released = 0;
        while !self.runs[run].is_root() && self.details[run].locked_children == 0 {
            let locked_end = self.deepest_lock(run);
            released += self.locked_end(run) - locked_end;
            self.details[run].locked_end = locked_end as u32;
            self.refresh_candidate(run);
            if self.has_lock(run) {
                break;
            }
            run = self.runs[run].parent;
            self.details[run].locked_children -= 1;
        }
        self.protected_units -= released;
        released
    }

    pub fn locked_end(&self, run: u32) -> usize {
        self.details[run].locked_end as usize
    }

    pub fn has_lock(&self, run: u32) -> bool {
        self.locked_end(run) > self.runs[run].start()
    }

    /// The end of the deepest mark with locks, or the start of the run.
    pub fn deepest_lock(&self, run: u32) -> usize {
        let mut mark = self.runs[run].marks;
        while mark != NIL {
            if self.marks[mark].locks > 0 {
                return self.marks[mark].end();
            }
            mark = self.marks[mark].above;
        }
        self.runs[run].start()
    }
}

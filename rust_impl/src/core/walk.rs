//! From a key to the deepest page that it shares with the tree. Reads only.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::births::Handle;
use super::spaces::Namespace;
use super::tree::Tree;
use super::{Failure, NoMemory};

/// What every look-up is given.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What follows `start`; for bigrams from its last token on.
    pub tokens: &'a [u32],
    /// None: left out, which is the default namespace, or that of `start`.
    pub namespace: Option<&'a Option<Arc<Namespace>>>,
    pub start: Option<&'a Handle>,
}

impl Request<'_> {
    pub fn space_name(&self) -> &Option<Arc<Namespace>> {
        match (self.start, self.namespace) {
            (Some(start), _) => start.namespace(),
            (None, Some(name)) => name,
            (None, None) => &None,
        }
    }

    pub fn start_depth(&self) -> usize {
        self.start.map_or(0, Handle::depth)
    }
}

pub struct Matched {
    /// The deepest matched page, or the root.
    pub handle: Handle,
}

impl Tree {
    /// The longest cached prefix. Refreshes its pages (by way of the touch log) and ticks the clock.
    pub fn match_prefix(&self, request: Request) -> Result<Matched, Failure> {
        let origin = self.origin(request)?;
        let aligned = self.config.aligned_units(request.tokens.len());
        let handle = match origin {
            None => {
                self.clock.fetch_add(1, Relaxed);
                self.root_handle(request.space_name().clone())
            }
            Some((run, depth)) => {
                let (run, depth) = self.walk(run, depth, request.tokens, aligned);
                if depth > 0 && self.config.policy.ranks_by_last() {
                    self.touches.note(run, depth, &self.clock)?;
                } else {
                    self.clock.fetch_add(1, Relaxed);
                }
                self.handle(run, depth)
            }
        };
        self.lookups.fetch_add(1, Relaxed);
        self.lookup_units.fetch_add(aligned as u64, Relaxed);
        self.hit_units.fetch_add((handle.depth() - request.start_depth()) as u64, Relaxed);
        Ok(Matched { handle })
    }

    /// The length that `match_prefix` would find, in units from the root.
    pub fn peek_prefix(&self, request: Request) -> Result<usize, Failure> {
        let aligned = self.config.aligned_units(request.tokens.len());
        let origin = self.origin(request)?;
        Ok(origin.map_or(0, |(run, depth)| self.walk(run, depth, request.tokens, aligned).1))
    }

    /// Where the request begins; None in a space without pages.
    pub fn origin(&self, request: Request) -> Result<Option<(u32, usize)>, Failure> {
        let Some(start) = request.start else {
            return Ok(self.space(request.space_name()).map(|space| (self.spaces[space].root, 0)));
        };
        if request.namespace.is_some_and(|given| given != start.namespace()) {
            return Err(Failure::OtherNamespace);
        }
        let at = self.locate(start)?;
        if let Some((run, depth)) = at
            && self.config.bigram
            && depth > 0
        {
            let last_token = self.spans.tokens(&self.runs[run].window)[depth - self.runs[run].start];
            if request.tokens.first() != Some(&last_token) {
                return Err(Failure::NotJoined { last_token });
            }
        }
        Ok(at)
    }

    /// From the page of `run` that ends at `depth` on along the first `units` units (whole pages) of `tokens`.
    pub fn walk(&self, mut run: u32, mut depth: usize, tokens: &[u32], units: usize) -> (u32, usize) {
        let (page, overlap) = (self.config.page_size, self.config.overlap());
        let base = depth;
        let goal = depth + units;
        loop {
            let here = &self.runs[run];
            let reach = goal.min(here.end());
            if depth < reach {
                let given = &tokens[depth - base..reach - base + overlap];
                let stored = &self.spans.tokens(&here.window)[depth - here.start..reach - here.start + overlap];
                let common = common_length(given, stored).saturating_sub(overlap);
                depth += common - common % page;
            }
            if depth == goal || depth < here.end() {
                return (run, depth);
            }
            match self.child(run, &tokens[depth - base..depth - base + page + overlap]) {
                None => return (run, depth),
                Some(child) => {
                    run = child;
                    depth += page;
                }
            }
        }
    }

    /// The slots of the path to that page from unit `from` on, into `slots`, which is as long as they are.
    pub fn path_indices(&self, handle: &Handle, from: usize, slots: &mut [i64]) -> Result<(), Failure> {
        let at = self.locate(handle)?;
        let Some((mut run, mut end)) = at.filter(|&(_, depth)| from < depth) else { return Ok(()) };
        // From the deep end up, each run's part to its place.
        while end > from {
            let here = &self.runs[run];
            let begin = here.start.max(from);
            let part = &self.spans.slots(&here.window)[begin - here.start..end - here.start];
            slots[begin - from..end - from].copy_from_slice(part);
            end = here.start;
            run = here.parent;
        }
        Ok(())
    }

    /// Every slot once.
    pub fn all_indices(&self) -> Result<Vec<i64>, NoMemory> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(self.total_units)?;
        for (_, run) in self.runs.entries() {
            slots.extend_from_slice(self.spans.slots(&run.window));
        }
        Ok(slots)
    }
}

/// How many elements two slices of equal length share from the front. Whole blocks are compared as memory.
fn common_length(a: &[u32], b: &[u32]) -> usize {
    const BLOCK: usize = 64;
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK)).take_while(|(x, y)| x == y).count();
    let from = (blocks * BLOCK).min(a.len());
    from + a[from..].iter().zip(&b[from..]).take_while(|(x, y)| x == y).count()
}

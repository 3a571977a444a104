//! From a key to the deepest page that it shares with the tree. Reads only.

use std::mem::MaybeUninit;
use std::sync::Arc;

use super::births::Handle;
use super::key::Key;
use super::spaces::Namespace;
use super::touches::Touch;
use super::tree::Tree;
use super::{Failure, NIL, NoMemory};

/// What every look-up is given.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What follows `start`; for bigrams from its last token on.
    pub key: Key<'a>,
    /// None: left out, which is the default namespace, or that of `start`.
    pub namespace: Option<&'a Option<Arc<Namespace>>>,
    pub start: Option<&'a Handle>,
    /// A page that this whole key (there is no start) is known to begin with, if it still exists.
    pub known: Option<&'a Handle>,
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

    /// The numbers of the key from `at` on have not been compared with tokens, so they may be none.
    pub fn refuse_outside(&self, at: usize) -> Result<(), Failure> {
        match self.key.from(at).first_outside() {
            None => Ok(()),
            Some(position) => Err(Failure::Outside { position: at + position }),
        }
    }
}

impl Tree {
    /// The longest cached prefix: the deepest matched page, or the root. Refreshes its pages (by way of the touch log)
    /// and ticks the clock.
    pub fn match_prefix(&self, request: Request) -> Result<Handle, Failure> {
        let (found, touch) = self.find_prefix(request)?;
        self.touches.note(touch)?;
        Ok(found)
    }

    /// The same but for the note, which is the caller's to pass on to `note_all` before the tree changes.
    pub fn find_prefix(&self, request: Request) -> Result<(Handle, Touch), Failure> {
        let (at, touch) = self.look_up(request)?;
        Ok((self.found(at, request), touch))
    }

    /// Refreshes what these matches found, and ticks the clock for each, in their order. Whether it is time for
    /// `drain_touches`.
    pub fn note_all(&self, touches: &[Touch]) -> Result<bool, NoMemory> {
        self.touches.note_all(touches)
    }

    /// For a caller who has the tree to itself: `found` becomes what `match_prefix` finds.
    #[inline]
    pub fn match_prefix_alone(&mut self, request: Request, found: &mut Handle) -> Result<(), Failure> {
        let (at, touch) = self.look_up(request)?;
        if !self.touches.note_alone(touch) {
            self.drain_touches()?;
            // The runs may be others now.
            return self.match_prefix_alone(request, found);
        }
        self.lookups += touch.into();
        *found = self.found(at, request);
        Ok(())
    }

    /// Where a match ends (None in a space without pages), and its note.
    #[inline]
    fn look_up(&self, request: Request) -> Result<(Option<(u32, usize)>, Touch), Failure> {
        let given = self.config.aligned_units(request.key.len());
        let base = request.start_depth();
        let Some((run, depth)) = self.origin(request)? else {
            request.refuse_outside(0)?;
            return Ok((None, Touch { given, ..Touch::nowhere() }));
        };
        let (run, depth) = self.walk_on((run, depth), request, given);
        request.refuse_outside(depth - base)?;
        let touched = if self.runs[run].has_pages() && self.config.policy.ranks_by_last() { run } else { NIL };
        Ok((Some((run, depth)), Touch { run: touched, depth, given, hit: depth - base }))
    }

    /// The walk of a request from its origin on, or from the page that its key is known to begin with.
    #[inline]
    pub fn walk_on(&self, (run, depth): (u32, usize), request: Request, units: usize) -> (u32, usize) {
        let usable = |known: &&Handle| known.depth() <= units && known.namespace() == request.space_name();
        if let Some(known) = request.known.filter(usable)
            && let Ok(Some((run, depth))) = self.locate(known)
        {
            return self.walk(run, depth, request.key.from(depth), units - depth);
        }
        self.walk(run, depth, request.key, units)
    }

    #[inline]
    fn found(&self, at: Option<(u32, usize)>, request: Request) -> Handle {
        match at {
            Some((run, depth)) if request.space_name().is_none() => self.handle_in(run, depth, None),
            Some((run, depth)) => self.handle(run, depth),
            None => self.root_handle(request.space_name().clone()),
        }
    }

    /// Goes ahead for a few look-ups that are to come.
    pub fn prefetch<'a>(&self, requests: impl Iterator<Item = Request<'a>>) {
        let roots = requests.filter(|request| request.start.is_none() && request.known.is_none());
        self.prefetch_walks(roots.filter_map(|request| {
            let space = self.space(request.space_name())?;
            Some((self.spaces[space].root, request.key))
        }));
    }

    /// The length that `match_prefix` would find, in units from the root.
    pub fn peek_prefix(&self, request: Request) -> Result<usize, Failure> {
        let base = request.start_depth();
        let aligned = self.config.aligned_units(request.key.len());
        let depth = self.origin(request)?.map_or(base, |origin| self.walk_on(origin, request, aligned).1);
        request.refuse_outside(depth - base)?;
        Ok(depth)
    }

    /// Where the request begins; None in a space without pages.
    #[inline]
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
            let last_token = self.tokens(run)[depth - self.runs[run].start()];
            if request.key.first() != Some(last_token) {
                return Err(Failure::NotJoined { last_token });
            }
        }
        Ok(at)
    }

    /// From the page of `run` that ends at `depth` on along the first `units` units (whole pages) of the key.
    ///
    /// Where a run ends is read from the run, not reckoned from what was found equal: so a processor that expects the
    /// whole run to match is at the child, waiting for its memory, while it still compares.
    #[inline]
    pub fn walk(&self, mut run: u32, mut depth: usize, key: Key, units: usize) -> (u32, usize) {
        let overlap = self.config.overlap();
        let (base, goal) = (depth, depth + units);
        // What is left of the run where the key begins; below it each child is compared as it is found.
        let mut end = self.runs[run].end();
        if depth < end {
            let common = key.common(&self.tokens(run)[depth - self.runs[run].start()..]);
            if common < end - depth + overlap {
                return (run, goal.min(depth + self.config.whole_pages(common.saturating_sub(overlap))));
            }
            depth = end;
        }
        while depth < goal && self.runs[run].children > 0 {
            let Some((child, common)) = self.child(run, key.from(depth - base)) else { break };
            run = child;
            end = self.runs[run].end();
            if common < end - depth + overlap {
                return (run, goal.min(depth + self.config.whole_pages(common - overlap)));
            }
            depth = end;
        }
        (run, depth.min(goal))
    }

    /// The slots of the path to that page from unit `from` on, into `slots`, which is as long as they are.
    pub fn path_indices(&self, handle: &Handle, from: usize, slots: &mut [MaybeUninit<i64>]) -> Result<(), Failure> {
        let at = self.locate(handle)?;
        let Some((mut run, mut end)) = at.filter(|&(_, depth)| from < depth) else { return Ok(()) };
        // From the deep end up, each run's part to its place.
        while end > from {
            let start = self.runs[run].start();
            let begin = start.max(from);
            self.slots(run).part(begin - start..end - start).copy_to(&mut slots[begin - from..end - from]);
            end = start;
            run = self.runs[run].parent;
        }
        Ok(())
    }

    /// Every slot once.
    pub fn all_indices(&self) -> Result<Vec<i64>, NoMemory> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(self.total_units)?;
        for (id, _) in self.runs.entries() {
            self.slots(id).append_to(&mut slots);
        }
        Ok(slots)
    }
}

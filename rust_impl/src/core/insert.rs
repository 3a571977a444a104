//! Insertion: the pages that are missing become one new run below the last page that was there.

use super::births::{Birth, Handle};
use super::events::Event;
use super::hashing::{event_hash, namespace_seed};
use super::key::Key;
use super::log::{Kind, note};
use super::marks::{Mark, Note};
use super::node::{Detail, Run};
use super::tree::Tree;
use super::walk::Request;
use super::window::Window;
use super::{Digest, Failure, NoMemory};

pub struct Insertion<'a> {
    pub request: Request<'a>,
    /// At least one for each unit of the key.
    pub slots: &'a [i64],
    pub priority: i64,
    /// Pages that end up to here get no hit, if they existed.
    pub inserted_len: usize,
}

pub struct Inserted {
    /// Units that were cached already, from the root.
    pub prefix_len: usize,
    /// The last page of the key, or the root.
    pub handle: Handle,
}

impl Tree {
    pub fn insert(&mut self, insertion: &Insertion) -> Result<Inserted, Failure> {
        self.drain_touches()?;
        self.reserve(2)?;
        self.reserve_space()?;
        let request = insertion.request;
        let units = self.config.aligned_units(request.key.len());
        let base = request.start_depth();
        // Depths are kept in 32 bits.
        let end = base.checked_add(units).filter(|&end| end < u32::MAX as usize).ok_or(Failure::NoMemory)?;
        let origin = self.origin(request)?;
        let at = origin.map(|origin| self.walk_on(origin, request, units));
        let prefix_len = at.map_or(0, |(_, depth)| depth);
        request.refuse_outside(prefix_len.saturating_sub(base))?;

        let new_run = if prefix_len < end {
            Some(self.insert_run(at, prefix_len - base, end - prefix_len, insertion)?)
        } else {
            self.tick();
            None
        };
        self.inserts += 1;
        self.inserted_units += (end - prefix_len) as u64;
        // The pages above the new ones: what the call says reaches them through its own mark, but for the hits that
        // an earlier chunk of the same request has brought them already.
        let deepest = match (new_run, at) {
            (Some(run), _) => run,
            (None, Some((run, depth))) => {
                let note = Note { last: self.clock, priority: insertion.priority, hits: 1 };
                self.write_at(run, depth, note);
                run
            }
            (None, None) => {
                let handle = self.root_handle(request.space_name().clone());
                return Ok(Inserted { prefix_len, handle });
            }
        };
        let counted = self.config.whole_pages(insertion.inserted_len.min(prefix_len));
        if counted > 0 {
            let run = self.run_above(deepest, counted);
            self.write_at(run, counted, Note { last: 0, priority: i64::MIN, hits: -1 });
        }
        if new_run.is_some() {
            self.merge_chain(deepest);
        } else {
            self.merge_upwards(deepest);
        }
        self.compact_some();
        let run = self.run_above(deepest, end);
        Ok(Inserted { prefix_len, handle: self.handle(run, end) })
    }

    /// The run of the path to `run` that holds the page ending at `depth`.
    fn run_above(&self, mut run: u32, depth: usize) -> u32 {
        while depth <= self.runs[run].start() && !self.runs[run].is_root() {
            run = self.runs[run].parent;
        }
        run
    }

    /// Makes the new run of `units` units, which begin `skipped` units into the key. Everything that can fail comes
    /// before the first change, the tick included.
    fn insert_run(
        &mut self,
        at: Option<(u32, usize)>,
        skipped: usize,
        units: usize,
        insertion: &Insertion,
    ) -> Result<u32, Failure> {
        if let Some((run, _)) = at {
            self.reserve_candidate(self.details[run].space)?;
        }
        let tokens = insertion.request.key.part(skipped, units + self.config.overlap());
        let window = self.spans.store(tokens, &insertion.slots[skipped..skipped + units])?;
        match self.hang(at, window, insertion) {
            Ok(run) => Ok(run),
            Err(failure) => {
                self.spans.free(window);
                Err(failure)
            }
        }
    }

    /// Hangs a new run with that window below the page where the walk ended. An error leaves the window to the caller.
    fn hang(&mut self, at: Option<(u32, usize)>, window: Window, insertion: &Insertion) -> Result<u32, Failure> {
        let hash = match at {
            Some((run, depth)) => self.hash_of_new(run, depth, &window)?,
            None => None,
        };
        let event = if self.config.events { Some(self.prepare_event(at, &window, insertion)?) } else { None };
        let (run, depth) = match at {
            Some(at) => at,
            None => {
                let space = self.space_or_new(insertion.request.space_name());
                if self.reserve_candidate(space).is_err() {
                    self.drop_space(space);
                    return Err(Failure::NoMemory);
                }
                (self.spaces[space].root, 0)
            }
        };
        let parent = if depth < self.runs[run].end() { self.split(run, depth)? } else { run };
        let now = self.tick();
        let space = self.details[parent].space;
        let end = depth + window.len();
        let hash = match hash {
            Some(hash) => hash,
            None => self.child_hash(parent, Key::Narrow(self.spans.tokens(&window))),
        };
        let id = self.new_run(
            Run { parent, start: depth as u32, ..Run::default() },
            Detail { space, hash, locked_end: depth as u32, mark_count: 1, ..Detail::default() },
        );
        self.set_window(id, window);
        let birth = self.births.insert(Birth::new(now, id));
        let mark = self.new_mark(Mark { end: end as u32, birth, created: now, ..Mark::default() });
        self.write(mark, Note { last: now, priority: insertion.priority, hits: 1 }.ranked(self.config.policy));
        self.runs[id].marks = mark;
        self.link_child(id);
        self.join_generation(id);
        self.total_units += end - depth;
        note(Kind::Made, end - depth, depth);
        if !self.runs[parent].is_root() {
            self.refresh_candidate(parent);
        }
        self.refresh_candidate(id);
        if let Some((event, digests)) = event {
            self.keep_digests(id, digests);
            self.events.push_back(event);
        }
        Ok(id)
    }

    /// The tokens were stored after the walk had compared them; if another thread wrote to the key in between, they may
    /// not belong there any more. Returns the hash of the first page below `run`, if that is where it will hang.
    fn hash_of_new(&self, run: u32, depth: usize, window: &Window) -> Result<Option<u32>, Failure> {
        let stored = self.spans.tokens(window);
        let first = &stored[..self.config.page_tokens()];
        let there = &self.tokens(run)[depth - self.runs[run].start()..];
        if self.config.bigram && depth > 0 && there[0] != stored[0] {
            return Err(Failure::Raced);
        }
        if depth < self.runs[run].end() {
            return if there.starts_with(first) { Err(Failure::Raced) } else { Ok(None) };
        }
        let hash = self.child_hash(run, Key::Narrow(first));
        let exists = self.runs[run].children > 0 && self.child(run, Key::Narrow(first)).is_some();
        if exists { Err(Failure::Raced) } else { Ok(Some(hash)) }
    }

    fn prepare_event(
        &mut self,
        at: Option<(u32, usize)>,
        window: &Window,
        insertion: &Insertion,
    ) -> Result<(Event, Vec<Digest>), NoMemory> {
        self.reserve_event()?;
        let namespace = insertion.request.space_name().clone();
        let before = match at {
            Some((run, depth)) => self.digest_at(run, depth)?,
            None => namespace.as_deref().map(namespace_seed),
        };
        let tokens = self.spans.tokens(window);
        let digests = self.hash_new(tokens, before)?;
        let parent = before.filter(|_| at.is_some_and(|(_, depth)| depth > 0)).as_ref().map(event_hash);
        let mut hashes = Vec::new();
        hashes.try_reserve_exact(digests.len())?;
        hashes.extend(digests.iter().map(event_hash));
        let mut copy = Vec::new();
        copy.try_reserve_exact(tokens.len())?;
        copy.extend_from_slice(tokens);
        Ok((Event::Stored { hashes, parent, tokens: copy, namespace }, digests))
    }
}

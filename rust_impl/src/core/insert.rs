//! Insertion: the pages that are missing become one new run below the last page that was there.

use super::births::{Birth, Handle};
use super::events::Event;
use super::hashing::{event_hash, namespace_seed};
use super::marks::{Mark, Note};
use super::node::Run;
use super::tree::Tree;
use super::walk::Request;
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
    pub fn insert(&mut self, insertion: Insertion) -> Result<Inserted, Failure> {
        self.drain_touches()?;
        self.reserve(2)?;
        self.reserve_space()?;
        let request = insertion.request;
        let units = self.config.aligned_units(request.tokens.len());
        let base = request.start_depth();
        let end = base.checked_add(units).ok_or(Failure::NoMemory)?;
        let origin = self.origin(request)?;
        let at = origin.map(|(run, depth)| self.walk(run, depth, request.tokens, units));
        let prefix_len = at.map_or(0, |(_, depth)| depth);

        let new_run = if prefix_len < end {
            let tokens = &request.tokens[prefix_len - base..units + self.config.overlap()];
            Some(self.insert_run(at, tokens, &insertion.slots[prefix_len - base..units], &insertion)?)
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
                let note = Note { last: self.now(), priority: insertion.priority, hits: 1 };
                self.write_at(run, depth, note);
                run
            }
            (None, None) => {
                let handle = self.root_handle(request.space_name().clone());
                return Ok(Inserted { prefix_len, handle });
            }
        };
        let counted = insertion.inserted_len.min(prefix_len);
        let counted = counted - counted % self.config.page_size;
        if counted > 0 {
            let run = self.run_above(deepest, counted);
            self.write_at(run, counted, Note { last: 0, priority: i64::MIN, hits: -1 });
        }
        self.merge_upwards(deepest);
        self.compact_some();
        let run = self.run_above(deepest, end);
        Ok(Inserted { prefix_len, handle: self.handle(run, end) })
    }

    /// The run of the path to `run` that holds the page ending at `depth`.
    fn run_above(&self, mut run: u32, depth: usize) -> u32 {
        while depth <= self.runs[run].start && !self.runs[run].is_root() {
            run = self.runs[run].parent;
        }
        run
    }

    /// Makes the new run. Everything that can fail comes before the first change, the tick included.
    fn insert_run(
        &mut self,
        at: Option<(u32, usize)>,
        tokens: &[u32],
        slots: &[i64],
        insertion: &Insertion,
    ) -> Result<u32, NoMemory> {
        let namespace = insertion.request.space_name();
        if let Some((run, _)) = at {
            self.reserve_candidate(self.runs[run].space)?;
        }
        let event = if self.config.events { Some(self.prepare_event(at, tokens, insertion)?) } else { None };
        let window = self.spans.store(tokens, slots)?;
        let (run, depth) = match at {
            Some(at) => at,
            None => {
                let space = self.space_or_new(namespace);
                if self.reserve_candidate(space).is_err() {
                    self.drop_space(space);
                    self.spans.free(window);
                    return Err(NoMemory);
                }
                (self.spaces[space].root, 0)
            }
        };
        let parent = if depth < self.runs[run].end() {
            match self.split(run, depth) {
                Ok(upper) => upper,
                Err(error) => {
                    self.spans.free(window);
                    return Err(error);
                }
            }
        } else {
            run
        };
        let now = self.tick();
        let space = self.runs[parent].space;
        let units = window.len();
        let id = self.new_run(Run { parent, space, start: depth, locked_end: depth, window, ..Run::default() });
        let birth = self.births.insert(Birth { tick: now, anchor: id });
        let mut mark = Mark { end: depth + units, birth, ..Mark::default() };
        mark.write(Note { last: now, priority: insertion.priority, hits: 1 }.ranked(self.config.policy));
        self.runs[id].marks = self.marks.insert(mark);
        self.runs[id].mark_count = 1;
        self.link_child(id);
        self.join_generation(id);
        self.total_units += units;
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

    fn prepare_event(
        &mut self,
        at: Option<(u32, usize)>,
        tokens: &[u32],
        insertion: &Insertion,
    ) -> Result<(Event, Vec<Digest>), NoMemory> {
        self.reserve_event()?;
        let namespace = insertion.request.space_name().clone();
        let before = match at {
            Some((run, depth)) => self.digest_at(run, depth)?,
            None => namespace.as_deref().map(namespace_seed),
        };
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

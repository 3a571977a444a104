//! `check`: recomputes everything that is kept incrementally and names the invariant that broke.

use std::fmt::Arguments;

use super::key::Key;
use super::node::Run;
use super::text::formatted;
use super::tree::Tree;
use super::{NIL, NoMemory};

/// What one pass over the runs adds up.
struct Tally {
    units: usize,
    protected: usize,
    marks: usize,
    digests: usize,
    digest_lists: usize,
    candidates: usize,
    roots: usize,
    children: Vec<u32>,
    child_xor: Vec<u32>,
    locked_children: Vec<u32>,
    /// For each birth the deepest depth of its pages, and the run where they are.
    deepest: Vec<(usize, u32)>,
}

/// What `check` found, or that it could not look.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    Broken(String),
    NoMemory,
}

impl Fault {
    fn broken(what: Arguments) -> Self {
        formatted(what).map_or(Fault::NoMemory, Fault::Broken)
    }
}

impl From<NoMemory> for Fault {
    fn from(_: NoMemory) -> Self {
        Fault::NoMemory
    }
}

fn filled<T: Clone>(count: usize, with: T) -> Result<Vec<T>, NoMemory> {
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(count)?;
    numbers.resize(count, with);
    Ok(numbers)
}

macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(Fault::broken(format_args!($($message)+)));
        }
    };
}

impl Tree {
    /// Ok, or what is wrong. O(cached).
    pub fn check(&self) -> Result<(), Fault> {
        let tally = self.check_runs()?;
        for (id, run) in self.runs.entries().filter(|(_, run)| !run.is_vacant()) {
            let at = id as usize;
            ensure!(run.children == tally.children[at], "run {id}: its number of children is wrong");
            ensure!(self.runs[id].child_xor == tally.child_xor[at], "run {id}: the XOR of its children is wrong");
            ensure!(
                run.is_root() || self.details[id].locked_children == tally.locked_children[at],
                "run {id}: its number of locked children is wrong"
            );
            if self.has_lock(id) && !run.is_root() {
                let parent = &self.runs[run.parent];
                ensure!(
                    parent.is_root() || self.locked_end(run.parent) == parent.end(),
                    "run {id}: locked below an unlocked page"
                );
            }
            let expected = if self.details[id].locked_children > 0 { run.end() } else { self.deepest_lock(id) };
            ensure!(
                run.is_root() || self.locked_end(id) == expected,
                "run {id}: its locked pages do not follow from locks"
            );
        }
        ensure!(tally.units == self.total_units, "total_size is {}, but {} are cached", self.total_units, tally.units);
        ensure!(tally.protected == self.protected_units, "protected_size is wrong: {}", self.protected_units);
        ensure!(tally.marks == self.marks.len(), "some marks belong to no run");
        ensure!(tally.digests == self.digest_count, "the number of digests is wrong");
        ensure!(tally.digest_lists == self.digests.len(), "some digests belong to no run");
        ensure!(tally.roots == self.spaces.len(), "some space has no root, or some root no space");
        ensure!(self.children.len() == self.runs.len() - tally.roots, "the child table holds other runs");
        self.check_births(&tally)?;
        self.check_queues(&tally)?;
        self.check_spans()?;
        let drained = self.evicted_units <= self.inserted_units;
        let counted = self.inserted_units.wrapping_sub(self.evicted_units) == self.total_units as u64;
        ensure!(drained && counted, "statistics: inserted − evicted is not what is cached");
        Ok(())
    }

    fn check_runs(&self) -> Result<Tally, Fault> {
        let limit = self.runs.id_limit();
        let mut tally = Tally {
            units: 0,
            protected: 0,
            marks: 0,
            digests: 0,
            digest_lists: 0,
            candidates: 0,
            roots: 0,
            children: filled(limit, 0)?,
            child_xor: filled(limit, 0)?,
            locked_children: filled(limit, 0)?,
            deepest: filled(self.births.id_limit(), (0, NIL))?,
        };
        for (id, run) in self.runs.entries().filter(|(_, run)| !run.is_vacant()) {
            if run.is_root() {
                ensure!(self.spaces[self.details[id].space].root == id, "root {id}: its space has another root");
                ensure!(run.len() == 0 && run.marks == NIL, "root {id}: has pages of its own");
                ensure!(run.children > 0, "root {id}: its space has no pages");
                tally.roots += 1;
                continue;
            }
            self.check_place(id, run)?;
            self.check_marks(id, run, &mut tally)?;
            let pages = run.len() / self.config.page_size;
            let digests = self.digests_of(id).len();
            ensure!(digests <= pages, "run {id}: more digests than pages");
            if digests > 0 {
                let parent = &self.runs[run.parent];
                let above = self.digests_of(run.parent).len() * self.config.page_size;
                ensure!(above == parent.len(), "run {id}: has digests below a page without");
            }
            ensure!(!self.config.events || digests == pages, "run {id}: events are on, but a page has no digest");
            tally.digests += digests;
            tally.digest_lists += usize::from(self.details[id].digests != NIL);
            tally.units += run.len();
            tally.protected += self.locked_end(id) - run.start();
            let parent = run.parent as usize;
            tally.children[parent] += 1;
            tally.child_xor[parent] ^= id;
            tally.locked_children[parent] += u32::from(self.has_lock(id));
        }
        Ok(tally)
    }

    fn check_place(&self, id: u32, run: &Run) -> Result<(), Fault> {
        let page = self.config.page_size;
        ensure!(run.len() > 0 && run.len().is_multiple_of(page), "run {id}: does not hold whole pages");
        let beside = |_: &&Run| self.details[run.parent].space == self.details[id].space;
        let Some(parent) = self.runs.get(run.parent).filter(beside) else {
            return Err(Fault::broken(format_args!("run {id}: has no parent in its space")));
        };
        ensure!(parent.end() == run.start(), "run {id}: does not begin where its parent ends");
        ensure!((run.start()..=run.end()).contains(&self.locked_end(id)), "run {id}: locked_end lies outside");
        ensure!(
            (self.locked_end(id) - run.start()).is_multiple_of(page),
            "run {id}: locked_end is not the end of a page"
        );
        let tokens = self.tokens(id);
        if self.config.bigram && !parent.is_root() {
            let above = self.tokens(run.parent);
            ensure!(above.last() == tokens.first(), "run {id}: does not share a token with its parent");
        }
        let first = Key::Narrow(&tokens[..self.config.page_tokens()]);
        let hash = self.details[id].hash;
        ensure!(self.child_hash(run.parent, first) == hash, "run {id}: its hash is wrong");
        let found = self.listed_child(run.parent, hash, first).map(|(child, _)| child);
        ensure!(found == Some(id), "run {id}: the child table leads elsewhere");
        Ok(())
    }

    fn check_marks(&self, id: u32, run: &Run, tally: &mut Tally) -> Result<(), Fault> {
        ensure!(run.marks != NIL && self.marks[run.marks].end() == run.end(), "run {id}: no mark where it ends");
        let (mut mark, mut count) = (run.marks, 0);
        while mark != NIL {
            let here = &self.marks[mark];
            let start = if here.above == NIL { run.start() } else { self.marks[here.above].end() };
            ensure!(start < here.end() && start >= run.start(), "run {id}: its marks are out of order");
            ensure!((here.end() - run.start()).is_multiple_of(self.config.page_size), "run {id}: a mark inside a page");
            let Some(birth) = self.births.get(here.birth).filter(|birth| birth.tick() > 0) else {
                return Err(Fault::broken(format_args!("run {id}: a mark without birth")));
            };
            ensure!(birth.tick() == here.created, "run {id}: a mark with the tick of another birth");
            ensure!(birth.tick() <= self.now() && here.last <= self.now(), "run {id}: a tick from the future");
            let deepest = &mut tally.deepest[here.birth as usize];
            if here.end() > deepest.0 {
                *deepest = (here.end(), id);
            }
            mark = here.above;
            count += 1;
        }
        ensure!(count == self.details[id].mark_count, "run {id}: its number of marks is wrong");
        tally.marks += usize::from(count);
        tally.candidates += usize::from(self.is_candidate(id));
        Ok(())
    }

    fn check_births(&self, tally: &Tally) -> Result<(), Fault> {
        for (id, birth) in self.births.entries().filter(|(_, birth)| birth.tick() > 0) {
            let (_, run) = tally.deepest[id as usize];
            ensure!(run != NIL, "birth {id}: has no page left");
            ensure!(birth.anchor == run, "birth {id}: its deepest page is in run {run}, not in {}", birth.anchor);
        }
        Ok(())
    }

    fn check_queues(&self, tally: &Tally) -> Result<(), Fault> {
        let (mut candidates, mut ranked) = (0, 0);
        for (id, space) in self.spaces.entries().filter(|(_, space)| space.root != NIL) {
            ensure!(self.space(&space.namespace) == Some(id), "space {id}: its namespace leads elsewhere");
            let (mut before, mut smallest) = (NIL, None);
            for run in space.candidates.list(self) {
                ensure!(self.details[run].before == before, "run {run}: wrong neighbour among the candidates");
                ensure!(self.details[run].space == id && self.is_candidate(run), "run {run}: is no candidate");
                ensure!(before == NIL || self.rank(before) < self.rank(run), "run {run}: out of order in the list");
                smallest = smallest.or(Some(self.rank(run)));
                before = run;
                candidates += 1;
            }
            ensure!(space.candidates.ends().1 == before, "space {id}: its list of candidates ends elsewhere");
            for (at, (rank, run)) in space.candidates.heap().iter().enumerate() {
                ensure!(self.place_in_heap(run) == Some(at), "run {run}: its place in the heap is wrong");
                ensure!(self.details[run].space == id && self.is_candidate(run), "run {run}: is no candidate");
                ensure!(self.rank(run) == rank, "run {run}: the heap has an old rank");
                ensure!(space.candidates.heap().in_order(at), "space {id}: its heap is out of order at {at}");
                smallest = smallest.min(Some(rank)).or(Some(rank));
                candidates += 1;
            }
            let place = self.space_positions[id];
            ensure!((place == NIL) == smallest.is_none(), "space {id}: ranked without candidates, or not with them");
            if let Some(rank) = smallest {
                let there = self.ranked_spaces.iter().nth(place as usize);
                ensure!(there == Some((rank, id)), "space {id}: its smallest rank is old");
                ranked += 1;
            }
        }
        ensure!(candidates == tally.candidates, "{} candidates, but {candidates} in the queues", tally.candidates);
        ensure!(self.ranked_spaces.iter().count() == ranked, "a space without candidates is ranked");
        let ordered = (0..ranked).all(|at| self.ranked_spaces.in_order(at));
        ensure!(ordered, "the heap of the spaces is out of order");
        Ok(())
    }

    fn check_spans(&self) -> Result<(), Fault> {
        let total: usize = self.spans.counts().map(|(_, _, live)| live).sum();
        ensure!(total == self.spans.shown_bytes(), "the live bytes of all generations do not add up");
        for (generation, windows, live) in self.spans.counts() {
            let (mut counted, mut bytes) = (0, 0);
            let (mut run, mut previous) = (self.spans.first_run(generation), NIL);
            while run != NIL {
                let here = &self.details[run];
                ensure!(here.generation == generation, "run {run}: in the list of another generation");
                ensure!(here.previous_in_generation == previous, "run {run}: wrong neighbour in its generation");
                counted += 1;
                bytes += self.spans.live_bytes(generation, self.runs[run].len());
                previous = run;
                run = here.next_in_generation;
            }
            ensure!(counted == windows, "generation {generation}: {windows} windows, but {counted} runs");
            ensure!(bytes == live, "generation {generation}: {live} live bytes, but {bytes} are shown");
        }
        Ok(())
    }
}

//! Calls of threads, and which answers some order of them explains.
//!
//! Obligation of `unsafe`:
//!
//! O1. `path_indices` writes all of what it is given, unless it refuses.

use super::super::errors::Broken;
use super::super::exclusive::Exclusive;
use super::super::gil::Gil;
use super::{Free, Held};
use crate::core::{Config, Failure, Handle, Insertion, Key, Limits, Policy, Request, Tree};
use crate::sync::Mutex;

pub type Tokens = &'static [u32];

#[derive(Debug, Clone, Copy)]
pub enum Call {
    /// With this slot first.
    Insert(Tokens, i64),
    Match(Tokens),
    Batch(&'static [Tokens]),
    /// The slots of the path to the page that this one of the first inserts made.
    Path(usize),
    Evict(u64),
    Size,
    Reset,
    /// An internal error half-way through a change.
    Fail,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Answer {
    Units(usize),
    Slots(Vec<i64>),
    Stale,
    Done,
    /// This call met the internal error.
    Broke,
    /// An earlier one did.
    Unusable,
}

pub struct Story {
    /// What is there before the threads begin: tokens and their first slot.
    pub before: &'static [(Tokens, i64)],
    pub threads: &'static [&'static [Call]],
}

/// A cache as a story finds it.
pub struct Cache {
    pub exclusive: Exclusive,
    handles: Vec<Handle>,
}

impl Cache {
    pub fn new(before: &[(Tokens, i64)]) -> Self {
        let limits = Limits::default();
        let config =
            Config { page_size: 1, policy: Policy::Lru, bigram: false, slru_threshold: 2, events: false, limits };
        let mut cache = Self { exclusive: Exclusive::new(config), handles: Vec::new() };
        for &(tokens, slot) in before {
            let inserted = cache.exclusive.write(Free, |tree| insert(tree, tokens, slot));
            cache.handles.push(inserted.ok().expect("nothing fails here").1);
        }
        cache
    }

    /// One answer for each step: a batch is a step for each of its keys.
    pub fn make(&self, call: Call, gil: impl Gil) -> Vec<Answer> {
        let cache = &self.exclusive;
        let answer = match call {
            Call::Insert(tokens, slot) => {
                cache.write(gil, |tree| insert(tree, tokens, slot)).map(|(prefix, _)| Answer::Units(prefix))
            }
            Call::Match(tokens) => {
                let mut found = Handle::nowhere();
                let outcome = cache.match_prefix(gil, request(tokens), &mut found);
                outcome.map(|outcome| {
                    outcome.expect("the key is of tokens");
                    Answer::Units(found.depth())
                })
            }
            Call::Batch(keys) => return self.batch(keys, gil),
            Call::Path(node) => cache.read(gil, |tree| {
                let handle = &self.handles[node];
                let mut slots = Box::new_uninit_slice(handle.depth());
                match tree.path_indices(handle, 0, &mut slots) {
                    // SAFETY: O1.
                    Ok(()) => Answer::Slots(unsafe { slots.assume_init() }.into_vec()),
                    Err(refusal) => {
                        assert_eq!(refusal, Failure::Stale);
                        Answer::Stale
                    }
                }
            }),
            Call::Evict(units) => {
                cache.write(gil, |tree| Answer::Slots(tree.evict(units).expect("there is memory").slots))
            }
            Call::Size => cache.read(gil, |tree| Answer::Units(tree.total_size())),
            Call::Reset => cache.reset(gil).map(|outcome| {
                outcome.expect("there is memory");
                Answer::Done
            }),
            Call::Fail => cache.write(gil, |tree| {
                tree.fail_half_way();
                Answer::Done
            }),
        };
        vec![answer.unwrap_or_else(Answer::from)]
    }

    /// As `Batch` does it with a stretch.
    fn batch(&self, keys: &[Tokens], gil: impl Gil) -> Vec<Answer> {
        let outcome = self.exclusive.detach(gil, |detached| {
            let (answers, is_full) = detached.read(|tree| {
                let found = keys.iter().map(|key| tree.find_prefix(request(key)).expect("the key is of tokens"));
                let (handles, touches): (Vec<_>, Vec<_>) = found.unzip();
                let is_full = tree.note_all(&touches).expect("there is memory");
                (handles.iter().map(|handle| Answer::Units(handle.depth())).collect(), is_full)
            })?;
            detached.drain_touches(is_full)?.expect("there is memory");
            Ok(answers)
        });
        outcome.unwrap_or_else(|fault: Broken| vec![fault.into(); keys.len()])
    }

    /// What is left, in the order in which it would go; None if the cache is unusable.
    pub fn end(&self) -> Option<Vec<i64>> {
        let left = self.exclusive.write(Free, |tree| {
            tree.drain_touches().expect("there is memory");
            tree.check().expect("the tree is sound");
            tree.evict(u64::MAX).expect("there is memory").slots
        });
        left.ok()
    }
}

impl From<Broken> for Answer {
    fn from(fault: Broken) -> Self {
        match fault {
            Broken::Reading(what) => panic!("an internal error: {what}"),
            Broken::Changing(what) if what == "as asked for" => Answer::Broke,
            Broken::Changing(what) => panic!("an internal error half-way: {what}"),
            Broken::Earlier => Answer::Unusable,
        }
    }
}

fn request(tokens: &[u32]) -> Request<'_> {
    Request { key: Key::Narrow(tokens), namespace: None, start: None, known: None }
}

fn insert(tree: &mut Tree, tokens: &[u32], slot: i64) -> (usize, Handle) {
    let slots: Vec<i64> = (slot..).take(tokens.len()).collect();
    let insertion = Insertion { request: request(tokens), slots: &slots, priority: 0, inserted_len: 0 };
    let inserted = tree.insert(&insertion).expect("there is memory");
    (inserted.prefix_len, inserted.handle)
}

/// A step of a thread: its answer, and between which events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Step {
    pub call: usize,
    pub answer: Answer,
    pub began: usize,
    pub ended: usize,
}

/// What the threads of a story were answered, and what was left.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Told {
    pub threads: Vec<Vec<Step>>,
    pub left: Option<Vec<i64>>,
}

impl Story {
    /// Whether the steps in some order, in which none comes before what had ended when it began, explain what was told.
    pub fn explains(&self, told: &Told) -> bool {
        let mut order = Vec::new();
        self.goes_on(told, &mut vec![0; told.threads.len()], &mut order)
    }

    fn goes_on(&self, told: &Told, places: &mut Vec<usize>, order: &mut Vec<usize>) -> bool {
        let heads = || told.threads.iter().zip(places.iter()).map(|(steps, &place)| steps.get(place));
        let Some(first_end) = heads().flatten().map(|step| step.ended).min() else {
            return self.tells(told, order);
        };
        let may: Vec<usize> = heads()
            .enumerate()
            .filter_map(|(thread, step)| step.filter(|step| step.began <= first_end).map(|_| thread))
            .collect();
        may.into_iter().any(|thread| {
            places[thread] += 1;
            order.push(thread);
            let explained = self.goes_on(told, places, order);
            order.pop();
            places[thread] -= 1;
            explained
        })
    }

    /// Whether these threads' steps, one after the other, are answered like that.
    fn tells(&self, told: &Told, order: &[usize]) -> bool {
        let cache = Cache::new(self.before);
        let mut steps: Vec<_> = self.threads.iter().map(|calls| steps_of(calls).into_iter()).collect();
        let mut answers: Vec<_> = told.threads.iter().map(|steps| steps.iter()).collect();
        for &thread in order {
            let (call, step) = (steps[thread].next().expect("a step"), answers[thread].next().expect("an answer"));
            if cache.make(call, Free) != [step.answer.clone()] {
                return false;
            }
        }
        cache.end() == told.left
    }
}

/// The calls with each batch as one of single keys.
fn steps_of(calls: &[Call]) -> Vec<Call> {
    let single = |call: &Call| match *call {
        Call::Batch(keys) => keys.chunks(1).map(Call::Batch).collect(),
        call => vec![call],
    };
    calls.iter().flat_map(single).collect()
}

/// Makes a call like a Python thread: with the GIL, if there is one.
pub fn call(cache: &Cache, call: Call, gil: Option<&Mutex<()>>) -> Vec<Answer> {
    match gil {
        Some(gil) => {
            let held = Held::take(gil);
            cache.make(call, &held)
        }
        None => cache.make(call, Free),
    }
}

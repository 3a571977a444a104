//! Batches: all arguments are read first, then the work runs without the GIL, by several threads where that helps.
//!
//! Keys are looked up side by side, which changes nothing, and what was found is noted in the order of the keys: so the
//! result and the state are those of the same calls one after the other, however many threads there were.

use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use super::arguments::{namespace, threads};
use super::errors::{Broken, at_element, failure, no_memory, type_error, value_error};
use super::exclusive::{Detached, Exclusive};
use super::keys::Tokens;
use super::objects::{tuple, tuple_of};
use super::pool;
use super::shared::shared;
use crate::core::{Failure, GROUP, Handle, Namespace, NoMemory, Request, Touch, Tree};

/// How long a batch stays detached before it looks for signals (and lets a fork go on).
const DETACHED: Duration = Duration::from_millis(20);

/// Keys for each thread, at least: waking one takes as long as some look-ups.
const SHARE: usize = 64;

/// Keys and tokens of a stretch: what is looked up under one hold of the lock, and refreshed after it. That is a whole
/// batch, if it is not larger, so that each of its keys is looked at once: nothing is done if one of them is bad, and a
/// look-up notices. A larger batch is looked at first; then its stretches are short for one thread, so that what it
/// refreshes is still near, and as long for several, since they meet at its end.
const STRETCH_AT_ONCE: (usize, usize) = (1 << 14, 1 << 23);
const STRETCH_ALONE: (usize, usize) = (64, 1 << 18);

/// The arguments of a batch.
pub struct Batch {
    keys: Keys,
    /// Empty: all in the default namespace.
    namespaces: Vec<Option<Arc<Namespace>>>,
    /// Threads beside this one.
    helpers: usize,
    /// Whether all keys make one stretch. If not, they have been looked at before the first is looked up.
    at_once: bool,
}

type Keys = Pin<Box<[Tokens]>>;

/// At which key a batch stopped, and why.
type Stopped = (usize, Failure);

impl Batch {
    pub fn new(
        py: Python<'_>,
        cache: &Exclusive,
        keys: &Bound<'_, PyAny>,
        extra_keys: Option<&Bound<'_, PyAny>>,
        thread_count: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let stored = stored_elements(keys, "keys")?;
        let thread_count = threads(thread_count);
        let most = thread_count.as_ref().map_or(1, |&count| count.min(pool::cores()));
        let helpers = most.min(stored.len() / SHARE).saturating_sub(1);
        let (keys, wrong) = read_keys(&stored)?;
        let names = extra_keys.map_or(Ok(Vec::new()), |extra_keys| read_namespaces(extra_keys, keys.len()));
        let mut batch = Self { keys, namespaces: Vec::new(), helpers, at_once: false };
        let (most_keys, most_tokens) = STRETCH_AT_ONCE;
        let tokens = || batch.keys.iter().map(|tokens| tokens.key().len()).sum::<usize>();
        batch.at_once = batch.len() <= most_keys && tokens() <= most_tokens;
        // What is wrong with a key comes before what is wrong with anything else.
        if !batch.at_once || wrong.is_some() || names.is_err() || thread_count.is_err() {
            batch.check(py, cache)?;
        }
        if let Some(error) = wrong {
            return Err(error);
        }
        batch.namespaces = names?;
        thread_count.map(|_| batch)
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn match_all(&self, py: Python<'_>, cache: &Exclusive) -> PyResult<Vec<Handle>> {
        let look_up = |tree: &Tree, request: Request, tokens: &Tokens| {
            let found = tree.find_prefix(request)?;
            tokens.remember(cache.id(), &found.0);
            Ok(found)
        };
        self.run(py, cache, Handle::nowhere(), look_up, Tree::note_all)
    }

    pub fn peek_all(&self, py: Python<'_>, cache: &Exclusive) -> PyResult<Vec<i64>> {
        let look_up =
            |tree: &Tree, request: Request, _: &Tokens| Ok((tree.peek_prefix(request)? as i64, Touch::nowhere()));
        self.run(py, cache, 0, look_up, |_, _| Ok(false))
    }

    /// Looks at all keys whole, since nothing of a batch is done if one of them is bad.
    fn check(&self, py: Python<'_>, cache: &Exclusive) -> PyResult<()> {
        for (number, part) in self.keys.chunks(STRETCH_AT_ONCE.0).enumerate() {
            let wrong = Mutex::new(usize::MAX);
            let groups = Mutex::new(part.chunks(GROUP).enumerate());
            let work = || {
                while let Some((group, keys)) = next(&groups) {
                    if let Some(at) = keys.iter().position(|tokens| tokens.key().first_outside().is_some()) {
                        let mut wrong = wrong.lock().unwrap_or_else(PoisonError::into_inner);
                        *wrong = (*wrong).min(group * GROUP + at);
                    }
                }
            };
            cache.detach(py, |_| pool::share(self.helpers, &work));
            let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let Some(error) = part.get(wrong).and_then(Tokens::outside) {
                return Err(at_element(py, error, "keys", number * STRETCH_AT_ONCE.0 + wrong));
            }
            py.check_signals()?;
        }
        Ok(())
    }

    fn run<T: Clone + Send>(
        &self,
        py: Python<'_>,
        cache: &Exclusive,
        nothing: T,
        look_up: impl Fn(&Tree, Request, &Tokens) -> Result<(T, Touch), Failure> + Sync,
        note: impl Fn(&Tree, &[Touch]) -> Result<bool, NoMemory> + Sync,
    ) -> PyResult<Vec<T>> {
        let mut results = filled(self.len(), nothing)?;
        let mut touches = filled(self.len().min(self.stretch_limits().0), Touch::nowhere())?;
        let mut done = 0;
        while done < results.len() {
            let work = |detached: &Detached| -> Result<Result<(), Stopped>, Broken> {
                let begun = Instant::now();
                while done < results.len() && begun.elapsed() < DETACHED {
                    let stretch = self.stretch(done);
                    let (results, touches) = (&mut results[stretch.clone()], &mut touches[..stretch.len()]);
                    let noted = detached.read(|tree| {
                        self.look_up_all(tree, cache.id(), stretch.start, results, touches, &look_up)?;
                        note(tree, touches).map_err(|error| (stretch.start, error.into()))
                    })?;
                    let is_full = match noted {
                        Ok(is_full) => is_full,
                        Err(stopped) => return Ok(Err(stopped)),
                    };
                    done = stretch.end;
                    if let Err(error) = detached.drain_touches(is_full)? {
                        return Ok(Err((done, error.into())));
                    }
                }
                Ok(Ok(()))
            };
            cache.detach(py, work)?.map_err(|stopped| self.error(py, stopped))?;
            py.check_signals()?;
        }
        Ok(results)
    }

    /// Looks up the keys from `first` on, shared among the threads: nothing changes.
    fn look_up_all<T: Send>(
        &self,
        tree: &Tree,
        cache: u64,
        first: usize,
        results: &mut [T],
        touches: &mut [Touch],
        look_up: impl Fn(&Tree, Request, &Tokens) -> Result<(T, Touch), Failure> + Sync,
    ) -> Result<(), Stopped> {
        let keys = &self.keys;
        let helpers = self.helpers.min(results.len() / SHARE);
        let groups = keys[first..].chunks(GROUP).zip(results.chunks_mut(GROUP).zip(touches.chunks_mut(GROUP)));
        let groups = Mutex::new((first..).step_by(GROUP).zip(groups));
        let stopped = Mutex::new(None::<Stopped>);
        let work = || {
            while let Some((first, (keys, (results, touches)))) = next(&groups) {
                let known: [_; GROUP] = std::array::from_fn(|at| keys.get(at).and_then(|tokens| tokens.recall(cache)));
                let request = |at: usize| Request {
                    key: keys[at].key(),
                    namespace: self.namespaces.get(first + at),
                    start: None,
                    known: known[at].as_ref(),
                };
                tree.prefetch((0..results.len()).map(request));
                // Most likely the next for this thread.
                self.keys[first..].iter().skip(GROUP).take(GROUP).for_each(|tokens| tokens.key().prefetch());
                for (at, (result, touch)) in results.iter_mut().zip(touches).enumerate() {
                    match look_up(tree, request(at), &keys[at]) {
                        Ok(found) => (*result, *touch) = found,
                        Err(failure) => {
                            let mut stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
                            if stopped.is_none_or(|(before, _)| first + at < before) {
                                *stopped = Some((first + at, failure));
                            }
                            break;
                        }
                    }
                }
            }
        };
        if helpers == 0 {
            work()
        } else {
            pool::share(helpers, &work)
        }
        stopped.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn stretch_limits(&self) -> (usize, usize) {
        if self.helpers == 0 && !self.at_once { STRETCH_ALONE } else { STRETCH_AT_ONCE }
    }

    /// The stretch that begins there.
    fn stretch(&self, first: usize) -> Range<usize> {
        let (keys, mut tokens) = self.stretch_limits();
        let fits = |key: &&Tokens| {
            let before = tokens;
            tokens = tokens.saturating_sub(key.key().len());
            before > 0
        };
        first..first + self.keys[first..].iter().take(keys).take_while(fits).count()
    }

    fn error(&self, py: Python<'_>, (index, why): Stopped) -> PyErr {
        // If it is a token no more, another thread has changed it meanwhile.
        match self.keys.get(index).filter(|_| matches!(why, Failure::Outside { .. })).and_then(Tokens::outside) {
            Some(error) => at_element(py, error, "keys", index),
            None => failure(py, why),
        }
    }
}

fn next<I: Iterator>(items: &Mutex<I>) -> Option<I::Item> {
    items.lock().unwrap_or_else(PoisonError::into_inner).next()
}

fn filled<T: Clone>(count: usize, value: T) -> PyResult<Vec<T>> {
    let mut made = Vec::new();
    made.try_reserve_exact(count).map_err(|error| no_memory(error.into()))?;
    made.resize(count, value);
    Ok(made)
}

/// All keys up to the first that has not the form of one, and what is wrong with that.
fn read_keys(stored: &Bound<'_, PyTuple>) -> PyResult<(Keys, Option<PyErr>)> {
    let mut read = Vec::new();
    read.try_reserve_exact(stored.len()).map_err(|error| no_memory(error.into()))?;
    read.resize_with(stored.len(), Tokens::empty);
    let mut read = Box::into_pin(read.into_boxed_slice());
    for index in 0..stored.len() {
        if index % (1 << 12) == 0 {
            stored.py().check_signals()?;
        }
        if let Err(error) = Tokens::one_of(read.as_mut(), index).read(&stored.get_item(index)?) {
            return Ok((read, Some(at_element(stored.py(), error, "keys", index))));
        }
    }
    Ok((read, None))
}

fn read_namespaces(extra_keys: &Bound<'_, PyAny>, count: usize) -> PyResult<Vec<Option<Arc<Namespace>>>> {
    let stored = stored_elements(extra_keys, "extra_keys")?;
    if stored.len() != count {
        return Err(value_error(format_args!(
            "extra_keys has {} elements, keys has {count}; they must be as many",
            stored.len()
        )));
    }
    let mut names = Vec::new();
    names.try_reserve_exact(count).map_err(|error| no_memory(error.into()))?;
    for (index, element) in stored.iter().enumerate() {
        names.push(namespace(&element).map_err(|error| at_element(stored.py(), error, "extra_keys", index))?);
    }
    Ok(names)
}

/// The elements as they are now: converting one may run code that changes the sequence.
fn stored_elements<'py>(sequence: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyTuple>> {
    if let Ok(list) = sequence.cast::<PyList>() {
        return tuple_of(list);
    }
    if let Ok(tuple) = sequence.cast_exact::<PyTuple>() {
        return Ok(tuple.clone());
    }
    if let Ok(items) = sequence.cast::<PyTuple>() {
        return tuple(sequence.py(), items.iter().map(Ok));
    }
    let py = sequence.py();
    let is_text = sequence.is_instance_of::<PyString>() || sequence.is_instance_of::<PyBytes>();
    let is_sequence = sequence.is_instance(shared(py)?.sequence.bind(py))?;
    if !is_sequence || is_text || PyUntypedBuffer::get(sequence).is_ok() {
        let kind = sequence.get_type();
        return Err(type_error(format_args!("{name} must be a sequence, not {}", kind.name()?)));
    }
    tuple(py, sequence.try_iter()?)
}

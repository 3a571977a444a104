//! Batches: all arguments are read first, then the work runs without the GIL.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use super::arguments::{namespace, threads};
use super::errors::{Broken, at_element, broken, failure, no_memory, type_error, value_error};
use super::exclusive::{Detached, Exclusive};
use super::keys::Tokens;
use super::objects::{tuple, tuple_of};
use super::shared::shared;
use crate::core::{Failure, GROUP, Handle, Key, Namespace, Request, Tree};

/// How long a batch stays detached before it looks for signals (and lets a fork go on).
const DETACHED: Duration = Duration::from_millis(20);
/// Keys and tokens between two looks at the time.
const STRETCH_KEYS: usize = 64;
const STRETCH_TOKENS: usize = 1 << 18;

/// The checked arguments of a batch.
pub struct Batch {
    keys: Pin<Box<[Tokens]>>,
    /// Empty: all in the default namespace.
    namespaces: Vec<Option<Arc<Namespace>>>,
}

impl Batch {
    pub fn new(
        keys: &Bound<'_, PyAny>,
        extra_keys: Option<&Bound<'_, PyAny>>,
        thread_count: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = keys.py();
        let keys = read_keys(keys)?;
        let mut namespaces = Vec::new();
        if let Some(extra_keys) = extra_keys {
            let stored = stored_elements(extra_keys, "extra_keys")?;
            if stored.len() != keys.len() {
                return Err(value_error(format_args!(
                    "extra_keys has {} elements, keys has {}; they must be as many",
                    stored.len(),
                    keys.len()
                )));
            }
            namespaces = elements_of(py, &stored, "extra_keys", namespace)?;
        }
        threads(thread_count)?;
        Ok(Self { keys, namespaces })
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn match_all(&self, py: Python<'_>, cache: &Exclusive) -> PyResult<Vec<Handle>> {
        let handles = self.run(py, cache, |tree, request| {
            let mut found = Handle::nowhere();
            tree.match_prefix(request, &mut found).map(|()| found)
        })?;
        self.keys.iter().zip(&handles).for_each(|(key, handle)| key.remember(cache.id(), handle));
        Ok(handles)
    }

    pub fn peek_all(&self, py: Python<'_>, cache: &Exclusive) -> PyResult<Vec<i64>> {
        self.run(py, cache, |tree, request| tree.peek_prefix(request).map(|length| length as i64))
    }

    fn run<T: Send>(
        &self,
        py: Python<'_>,
        cache: &Exclusive,
        look_up: impl Fn(&Tree, Request) -> Result<T, Failure> + Sync,
    ) -> PyResult<Vec<T>> {
        let mut keys: Vec<(Key, Option<Handle>)> = Vec::new();
        keys.try_reserve_exact(self.len()).map_err(|error| no_memory(error.into()))?;
        keys.extend(self.keys.iter().map(|key| (key.key(), key.recall(cache.id()))));
        let mut results = Vec::new();
        results.try_reserve_exact(self.len()).map_err(|error| no_memory(error.into()))?;
        let (namespaces, keys) = (&self.namespaces, &keys);
        let request = |index: usize| {
            let (key, known) = &keys[index];
            Request { key: *key, namespace: namespaces.get(index), start: None, known: known.as_ref() }
        };
        while results.len() < keys.len() {
            let stretch = |cache: &Detached| {
                let begun = Instant::now();
                while results.len() < keys.len() && begun.elapsed() < DETACHED {
                    let full = cache.read(|tree| {
                        let (mut left_keys, mut left_tokens) = (STRETCH_KEYS, STRETCH_TOKENS);
                        while results.len() < keys.len() && left_keys > 0 && left_tokens > 0 {
                            if left_keys % GROUP == 0 {
                                let next = results.len()..keys.len().min(results.len() + GROUP);
                                tree.prefetch(next.map(request));
                            }
                            let request = request(results.len());
                            match look_up(tree, request) {
                                Ok(result) => results.push(result),
                                Err(refusal) => return Err(refusal),
                            }
                            left_keys -= 1;
                            left_tokens = left_tokens.saturating_sub(request.key.len());
                        }
                        Ok(())
                    })?;
                    match full {
                        Err(Failure::LogFull) => {
                            if let Err(error) = cache.write(Tree::drain_touches)? {
                                return Ok(Err(error.into()));
                            }
                        }
                        Err(refusal) => return Ok(Err(refusal)),
                        Ok(()) => {}
                    }
                }
                Ok::<Result<(), Failure>, Broken>(Ok(()))
            };
            let outcome = cache.detach(py, stretch).map_err(|fault| broken(py, fault))?;
            outcome.map_err(|refusal| failure(py, refusal))?;
            py.check_signals()?;
        }
        Ok(results)
    }
}

/// Keys whose numbers are asked for before the first is looked at.
const AHEAD: usize = 16;

/// All keys, each checked whole, since nothing of a batch is done if one of them is bad.
fn read_keys(keys: &Bound<'_, PyAny>) -> PyResult<Pin<Box<[Tokens]>>> {
    let py = keys.py();
    let stored = stored_elements(keys, "keys")?;
    let mut read = Vec::new();
    read.try_reserve_exact(stored.len()).map_err(|error| no_memory(error.into()))?;
    read.resize_with(stored.len(), Tokens::empty);
    let mut read = Box::into_pin(read.into_boxed_slice());
    // Some at a time: the numbers of all of them are on their way while the first are checked.
    for first in (0..stored.len()).step_by(AHEAD) {
        let some = first..stored.len().min(first + AHEAD);
        let mut form = Ok(());
        let mut taken = first;
        while form.is_ok() && taken < some.end {
            let tokens = Tokens::one_of(read.as_mut(), taken);
            form = tokens.read(&stored.get_item(taken)?);
            taken += usize::from(form.is_ok());
            read[some.start..taken].last().inspect(|tokens| tokens.key().prefetch());
        }
        // Of several bad keys the first is named.
        for (index, tokens) in read.iter().enumerate().take(taken).skip(first) {
            if let Some(error) = tokens.outside() {
                return Err(at_element(py, error, "keys", index));
            }
        }
        form.map_err(|error| at_element(py, error, "keys", taken))?;
    }
    Ok(read)
}

fn elements_of<'py, T>(
    py: Python<'py>,
    stored: &Bound<'py, PyTuple>,
    name: &str,
    convert: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let mut converted = Vec::new();
    converted.try_reserve_exact(stored.len()).map_err(|error| no_memory(error.into()))?;
    for (index, element) in stored.iter().enumerate() {
        converted.push(convert(&element).map_err(|error| at_element(py, error, name, index))?);
    }
    Ok(converted)
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

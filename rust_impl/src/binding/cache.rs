//! `RadixCache`: the public class. It checks arguments in the order of the protocol, calls the tree and makes results.

use std::pin::pin;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use super::arguments::{Given, count, int64, length, namespace};
use super::arrays::{Slots, copied, filled};
use super::batch::Batch;
use super::errors::{failure, no_memory, not_copied, value_error};
use super::events::shown_event;
use super::exclusive::Exclusive;
use super::keys::{Tokens, Values};
use super::log::hand_over;
use super::nodes::{own, start_of};
use super::objects::{dict, list, number, text};
use super::results::{BatchMatchResult, EvictResult, InsertResult, MatchResult, path_slots};
use super::shared::shared;
use crate::core::log::{Kind, note};
use crate::core::{Config, Digest, Failure, Fault, Insertion, Limits, NoMemory, Policy, Request, Tree, formatted};

/// A prefix cache in Rust; `triradix.PrefixCache` is its contract.
///
/// n: tokens given; h: runs (branches) on the path; L: evictable leaves.
///
/// Find: `match_prefix` O(n + h), `match_prefix_many` the same for each key, `peek_prefix`, `peek_prefix_many`.
/// Keep: `insert` O(n + h), `inc_lock_ref` and `dec_lock_ref` O(runs whose pages become locked or free).
/// Free: `evict`, `evict_namespace` O(freed + runs touched · log L), `reset` O(runs).
/// Look: `path_indices` O(result + h), `all_indices` O(cached), `total_size`, `evictable_size`, `protected_size`,
/// `stats` O(1), `block_hashes` O(result + pages not hashed yet), `take_events`, `pretty_print`, `check` O(cached).
///
/// Any method may be called from any thread; matches and peeks do not wait for one another.
#[pyclass(frozen, weakref, module = "triradix.rust_impl")]
pub struct RadixCache {
    pub tree: Exclusive,
    config: Config,
    policy: &'static str,
    /// As given: they may be larger than what the tree can use.
    page_size: Py<PyAny>,
    slru_threshold: Py<PyAny>,
}

#[pymethods]
impl RadixCache {
    #[new]
    #[pyo3(
        signature = (
            *,
            page_size = Given::Default,
            eviction_policy = Given::Default,
            bigram = Given::Default,
            slru_threshold = Given::Default,
            enable_kv_cache_events = Given::Default
        ),
        text_signature = "(*, page_size=1, eviction_policy='lru', bigram=False, slru_threshold=2, \
        enable_kv_cache_events=False)"
    )]
    fn new(
        py: Python<'_>,
        page_size: Given<'_>,
        eviction_policy: Given<'_>,
        bigram: Given<'_>,
        slru_threshold: Given<'_>,
        enable_kv_cache_events: Given<'_>,
    ) -> PyResult<Self> {
        let checked = shared(py)?.check_config.bind(py).call1((
            page_size.or_object(py, 1)?,
            eviction_policy.or_object(py, "lru")?,
            bigram.or_object(py, false)?,
            slru_threshold.or_object(py, 2)?,
            enable_kv_cache_events.or_object(py, false)?,
        ))?;
        let (page_size, slru_threshold) = (checked.get_item(0)?, checked.get_item(3)?);
        let name = checked.get_item(1)?;
        let name = name.cast::<PyString>()?.to_str()?;
        let &(policy_name, policy) = Policy::ALL
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| value_error(format_args!("the Rust tree knows no eviction_policy {name:?}")))?;
        let config = Config {
            // No key is as long as that; so much is left that sums of it do not overflow.
            page_size: length(&page_size, "page_size")?.min(usize::MAX / 4),
            policy,
            bigram: checked.get_item(2)?.extract()?,
            slru_threshold: i64::try_from(count(&slru_threshold, "slru_threshold")?).unwrap_or(i64::MAX),
            events: checked.get_item(4)?.extract()?,
            limits: Limits::default(),
        };
        Ok(Self {
            tree: Exclusive::new(config),
            config,
            policy: policy_name,
            page_size: page_size.unbind(),
            slru_threshold: slru_threshold.unbind(),
        })
    }

    /// Units a page, as given.
    #[getter]
    fn page_size(&self, py: Python<'_>) -> Py<PyAny> {
        self.page_size.clone_ref(py)
    }

    /// The policy, as given.
    #[getter]
    fn eviction_policy(&self) -> &'static str {
        self.policy
    }

    /// Whether units are pairs of tokens, as given.
    #[getter]
    fn bigram(&self) -> bool {
        self.config.bigram
    }

    /// Hits from which a page is protected under slru, as given.
    #[getter]
    fn slru_threshold(&self, py: Python<'_>) -> Py<PyAny> {
        self.slru_threshold.clone_ref(py)
    }

    /// Whether events are kept, as given.
    #[getter]
    fn enable_kv_cache_events(&self) -> bool {
        self.config.events
    }

    // Find

    /// The longest cached prefix of ``key``; refreshes every page on its path. O(n + h).
    #[pyo3(signature = (key, extra_key = None, *, start = None))]
    fn match_prefix(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        extra_key: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<MatchResult>> {
        let mut tokens = pin!(Tokens::empty());
        tokens.as_mut().read(key)?;
        let call = || {
            let name = extra_key.map(namespace).transpose()?;
            let start = start_of(slf, start)?;
            let tree = &slf.get().tree;
            let known = if start.is_none() { tokens.recall(tree.id()) } else { None };
            let request = Request { key: tokens.key(), namespace: name.as_ref(), start, known: known.as_ref() };
            let mut result = MatchResult::begin(slf, request.start_depth())?;
            let outcome = tree.match_prefix(slf.py(), request, result.handle())?;
            outcome.map_err(|refusal| failure(slf.py(), refusal))?;
            if start.is_none() {
                tokens.remember(tree.id(), result.handle());
            }
            Ok(result.end())
        };
        call().map_err(|error| tokens.outside().unwrap_or(error))
    }

    /// `match_prefix` of each key in order, in one crossing and without the GIL.
    #[pyo3(signature = (keys, extra_keys = None, *, threads = None))]
    fn match_prefix_many(
        slf: &Bound<'_, Self>,
        keys: &Bound<'_, PyAny>,
        extra_keys: Option<&Bound<'_, PyAny>>,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<BatchMatchResult>> {
        let (py, tree) = (slf.py(), &slf.get().tree);
        let batch = Batch::new(py, tree, keys, extra_keys, threads)?;
        let result = BatchMatchResult::begin(slf)?;
        Ok(result.end(batch.match_all(py, tree)?))
    }

    /// The length that `match_prefix` would find; changes nothing. O(n + h).
    #[pyo3(signature = (key, extra_key = None, *, start = None))]
    fn peek_prefix<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'_, PyAny>,
        extra_key: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let mut tokens = pin!(Tokens::empty());
        tokens.as_mut().read(key)?;
        let call = || {
            let name = extra_key.map(namespace).transpose()?;
            let start = start_of(slf, start)?;
            let known = if start.is_none() { tokens.recall(slf.get().tree.id()) } else { None };
            let request = Request { key: tokens.key(), namespace: name.as_ref(), start, known: known.as_ref() };
            let found = slf.get().tree.read(py, |tree| tree.peek_prefix(request))?;
            number(py, found.map_err(|refusal| failure(py, refusal))?)
        };
        call().map_err(|error| tokens.outside().unwrap_or(error))
    }

    /// `peek_prefix` of each key: their lengths.
    #[pyo3(signature = (keys, extra_keys = None, *, threads = None))]
    fn peek_prefix_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        extra_keys: Option<&Bound<'py, PyAny>>,
        threads: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Slots>> {
        let batch = Batch::new(py, &self.tree, keys, extra_keys, threads)?;
        copied(py, &batch.peek_all(py, &self.tree)?)
    }

    // Keep

    /// Cache the whole pages of ``key`` with the slots ``values``. O(n + h).
    #[pyo3(
        signature = (
            key,
            values,
            extra_key = None,
            *,
            priority = Given::Default,
            start = None,
            inserted_len = Given::Default
        ),
        text_signature = "($self, key, values, extra_key=None, *, priority=0, start=None, inserted_len=0)"
    )]
    fn insert(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        extra_key: Option<&Bound<'_, PyAny>>,
        priority: Given<'_>,
        start: Option<&Bound<'_, PyAny>>,
        inserted_len: Given<'_>,
    ) -> PyResult<Py<InsertResult>> {
        let py = slf.py();
        let mut tokens = pin!(Tokens::empty());
        tokens.as_mut().read(key)?;
        let mut slots = pin!(Values::empty());
        let call = || {
            let name = extra_key.map(namespace).transpose()?;
            slots.as_mut().read(values, tokens.key().len())?;
            let priority = priority.or(0, |value| int64(value, "priority"))?;
            let inserted_len = inserted_len.or(0, |value| length(value, "inserted_len"))?;
            let start = start_of(slf, start)?;
            let tree = &slf.get().tree;
            let known = if start.is_none() { tokens.recall(tree.id()) } else { None };
            let result = InsertResult::begin(slf)?;
            loop {
                let request = Request { key: tokens.key(), namespace: name.as_ref(), start, known: known.as_ref() };
                let insertion = Insertion { request, slots: slots.slots(), priority, inserted_len };
                match tree.write(py, |tree| tree.insert(&insertion))? {
                    Ok(inserted) => {
                        if start.is_none() {
                            tokens.remember(tree.id(), &inserted.handle);
                        }
                        return Ok(result.end(inserted));
                    }
                    Err(Failure::Raced) => tokens.as_mut().copy()?,
                    Err(refusal) => return Err(failure(py, refusal)),
                }
            }
        };
        let inserted = call().map_err(|error| tokens.outside().unwrap_or(error))?;
        hand_over(py)?;
        Ok(inserted)
    }

    /// Lock every page from ``node`` to the root; returns the units that became protected.
    fn inc_lock_ref<'py>(slf: &Bound<'py, Self>, node: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let handle = own(slf, node, "node")?;
        let tree = &slf.get().tree;
        let units = tree.write(py, |tree| tree.inc_lock_ref(handle))?.map_err(|refusal| failure(py, refusal))?;
        number(py, units).or_else(|error| {
            tree.write(py, |tree| tree.dec_lock_ref(handle))?.map_err(|refusal| failure(py, refusal))?;
            Err(error)
        })
    }

    /// Take back one `inc_lock_ref` of the same page; returns the units that became evictable.
    fn dec_lock_ref<'py>(slf: &Bound<'py, Self>, node: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let handle = own(slf, node, "node")?;
        let tree = &slf.get().tree;
        let units = tree.write(py, |tree| tree.dec_lock_ref(handle))?.map_err(|refusal| failure(py, refusal))?;
        number(py, units).or_else(|error| {
            tree.write(py, |tree| tree.inc_lock_ref(handle))?.map_err(|refusal| failure(py, refusal))?;
            Err(error)
        })
    }

    // Free

    /// Free pages until at least ``num_tokens`` units are free, or no page can go.
    fn evict(&self, py: Python<'_>, num_tokens: &Bound<'_, PyAny>) -> PyResult<Py<EvictResult>> {
        let units = count(num_tokens, "num_tokens")?;
        let result = EvictResult::begin(py)?;
        // To make an array may let others change the tree, so that it is not the right size any more.
        let result = loop {
            let size = self.tree.read(py, |tree| tree.evictable(units))?;
            let mut done = false;
            let array = filled(py, size, |slots| {
                done = self.tree.write(py, |tree| tree.evict_into(units, slots))?.map_err(no_memory)?;
                Ok(())
            })?;
            if done {
                break result.end_with(size, array.unbind());
            }
        };
        hand_over(py)?;
        Ok(result)
    }

    /// `evict` among the pages of one namespace; None: as many as can go.
    #[pyo3(signature = (extra_key, num_tokens = None))]
    fn evict_namespace(
        &self,
        py: Python<'_>,
        extra_key: &Bound<'_, PyAny>,
        num_tokens: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<EvictResult>> {
        let name = namespace(extra_key)?;
        let units = num_tokens.map_or(Ok(u64::MAX), |value| count(value, "num_tokens"))?;
        let result = EvictResult::begin(py)?;
        let evicted = self.tree.write(py, |tree| tree.evict_namespace(&name, units))?.map_err(no_memory)?;
        let result = result.end(evicted);
        hand_over(py)?;
        Ok(result)
    }

    /// Drop everything: all nodes become stale. Queued events stay, and statistics start anew.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.tree.reset(py)?.map_err(no_memory)?;
        hand_over(py)
    }

    // Look

    /// The slots of the node's path from unit ``start`` on.
    #[pyo3(signature = (node, start = Given::Default), text_signature = "($self, node, start=0)")]
    fn path_indices<'py>(
        slf: &Bound<'py, Self>,
        node: &Bound<'py, PyAny>,
        start: Given<'py>,
    ) -> PyResult<Bound<'py, Slots>> {
        let from = start.or(0, |value| length(value, "start"))?;
        path_slots(slf, own(slf, node, "node")?, from)
    }

    /// Every cached slot once, in no particular order.
    fn all_indices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Slots>> {
        let gathered = self.tree.read(py, |tree| tree.all_indices())?;
        copied(py, &gathered.map_err(no_memory)?)
    }

    /// Cached units: evictable + protected.
    fn total_size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        number(py, self.tree.read(py, |tree| tree.total_size())?)
    }

    /// Units without a lock: what `evict` can free.
    fn evictable_size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        number(py, self.tree.read(py, |tree| tree.total_size() - tree.protected_size())?)
    }

    /// Units of locked pages.
    fn protected_size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        number(py, self.tree.read(py, |tree| tree.protected_size())?)
    }

    /// Counts since the start or the last reset, and what the cache holds now.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.tree.read(py, |tree| tree.stats())?;
        let count = |count: u64| number(py, count as usize);
        dict(
            py,
            [
                (c"lookups", count(stats.lookups)?),
                (c"lookup_tokens", count(stats.lookup_tokens)?),
                (c"hit_tokens", count(stats.hit_tokens)?),
                (c"inserts", count(stats.inserts)?),
                (c"inserted_tokens", count(stats.inserted_tokens)?),
                (c"evicted_tokens", count(stats.evicted_tokens)?),
                (c"total_tokens", number(py, stats.total_tokens)?),
                (c"nodes", number(py, stats.nodes)?),
                (c"memory_bytes", number(py, stats.memory_bytes)?),
            ],
        )
    }

    /// The 32-byte digest of each page of the node's path.
    fn block_hashes<'py>(slf: &Bound<'py, Self>, node: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let handle = own(slf, node, "node")?;
        let hashes = slf.get().tree.write(py, |tree| {
            tree.drain_touches()?;
            tree.block_hashes(handle)
        })?;
        let hashes = hashes.map_err(|refusal: Failure| failure(py, refusal))?;
        let shown = |digest: &Digest| {
            let copy = |bytes: &mut [u8]| {
                bytes.copy_from_slice(digest);
                Ok(())
            };
            Ok(PyBytes::new_with(py, digest.len(), copy)?.into_any())
        };
        list(py, hashes.iter().map(shown))
    }

    /// Hand over and clear the queue of events, oldest first.
    fn take_events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let events = self.tree.write(py, |tree| tree.take_events())?;
        let shown = list(py, events.iter().map(|event| shown_event(py, event, &self.config)));
        if shown.is_err() {
            self.tree.write(py, |tree| tree.put_back_events(events))?;
        }
        shown
    }

    /// Walk every invariant of the tree; IntegrityError names the one that broke. O(cached).
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let outcome = self.tree.write(py, |tree| {
            tree.drain_touches()?;
            tree.check()
        })?;
        match outcome {
            Ok(()) => Ok(()),
            Err(Fault::NoMemory) => Err(no_memory(NoMemory)),
            Err(Fault::Broken(what)) => {
                note(Kind::Broken, 0, 0);
                hand_over(py)?;
                Err(PyErr::from_value(shared(py)?.integrity_error.bind(py).call1((text(py, &what)?,))?))
            }
        }
    }

    /// Write the tree for people to ``file`` (stdout): long runs shortened, no recursion.
    #[pyo3(signature = (file = None))]
    fn pretty_print(&self, py: Python<'_>, file: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let printed = self.tree.read(py, |tree| tree.printed())?.map_err(no_memory)?;
        let file = file.cloned().map_or_else(|| py.import("sys")?.getattr("stdout"), Ok)?;
        // A process without a stdout: as silent as `print` is then.
        if !file.is_none() {
            file.call_method1(text(py, "write")?, (text(py, &printed)?,))?;
        }
        Ok(())
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let (stats, locked) = self.tree.read(py, |tree| (tree.stats(), tree.protected_size()))?;
        let page_size = shared(py)?.shown.bind(py).call1((&self.page_size,))?;
        let (policy, bigram) = (self.policy, if self.config.bigram { "True" } else { "False" });
        let (tokens, nodes) = (stats.total_tokens, stats.nodes);
        let shown = formatted(format_args!(
            "RadixCache(page_size={page_size}, eviction_policy={policy:?}, bigram={bigram}: {tokens} tokens, \
            {locked} of them locked, in {nodes} nodes)"
        ));
        text(py, &shown.map_err(no_memory)?)
    }

    /// For tests of what an internal error does: one while the tree is read, or half-way through a change.
    fn _fail(&self, py: Python<'_>, changing: bool) -> PyResult<()> {
        let outcome = if changing {
            self.tree.write(py, Tree::fail_half_way)
        } else {
            self.tree.read(py, |_| panic!("as asked for"))
        };
        Ok(outcome?)
    }

    /// For tests of what a failed check does: every check until the next reset fails.
    fn _miscount(&self, py: Python<'_>) -> PyResult<()> {
        Ok(self.tree.write(py, Tree::miscount)?)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_copied("RadixCache"))
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(not_copied("RadixCache"))
    }
}

//! What the operations return. Light classes: nodes and arrays are made when they are asked for.
//!
//! Obligations of `unsafe`:
//!
//! O1. What is `Late` is written by way of a `Begun` alone, which is the only reference then; from the end of the call
//!     on it is only read.
//! O2. Objects of the class are the header and the value: the module does not load if `refuse_other_layouts` finds
//!     others.

use std::cell::UnsafeCell;
use std::fmt::Arguments;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::arrays::{Slots, filled, read_only};
use super::cache::RadixCache;
use super::errors::{failure, no_memory, not_copied};
use super::exclusive::Exclusive;
use super::kept::Kept;
use super::nodes::Node;
use super::objects::{holds_only, new_in_place, number, text, tuple};
use crate::core::{Evicted, Failure, Handle, Inserted, Tree, copy, formatted};

/// A result is made before the tree changes, since making it can fail. Nobody sees it before its call has ended.
pub struct Begun<T>(T);

/// What the call writes into its result in the end.
struct Late<T>(UnsafeCell<T>);

// SAFETY: O1.
unsafe impl<T: Send + Sync> Sync for Late<T> {}

impl<T> Late<T> {
    const fn new(before: T) -> Self {
        Self(UnsafeCell::new(before))
    }

    /// # Safety
    /// O1: nobody else knows of it yet.
    #[allow(clippy::mut_from_ref)]
    unsafe fn get_mut(&self) -> &mut T {
        // SAFETY: O1, of the caller.
        unsafe { &mut *self.0.get() }
    }

    fn get(&self) -> &T {
        // SAFETY: O1: no writer any more.
        unsafe { &*self.0.get() }
    }
}

/// Found or inserted: the cache, where the call ended, and the node once it was asked for.
struct End {
    cache: Py<RadixCache>,
    handle: Late<Handle>,
    node: Kept<Node>,
}

impl End {
    fn new(cache: &Bound<'_, RadixCache>) -> Self {
        Self { cache: cache.clone().unbind(), handle: Late::new(Handle::nowhere()), node: Kept::nothing() }
    }

    fn handle(&self) -> &Handle {
        self.handle.get()
    }

    fn node(&self, py: Python<'_>) -> PyResult<Py<Node>> {
        let make = || Py::new(py, Node { cache: self.cache.clone_ref(py), handle: self.handle().clone() });
        self.node.get_or_make(py, make)
    }
}

/// Refuses a PyO3 that lays objects out in a way unknown here.
pub fn refuse_other_layouts(py: Python<'_>) -> PyResult<()> {
    if holds_only::<MatchResult>(py) && holds_only::<InsertResult>(py) && holds_only::<EvictResult>(py) {
        return Ok(());
    }
    Err(PyImportError::new_err("the Rust tree was built with a PyO3 that lays out objects in a way unknown to it"))
}

/// What `match_prefix` found.
#[pyclass(frozen, module = "triradix.rust_impl")]
pub struct MatchResult {
    end: End,
    start: usize,
    indices: Kept<Slots>,
}

impl MatchResult {
    pub fn begin(cache: &Bound<'_, RadixCache>, start: usize) -> PyResult<Begun<Py<Self>>> {
        let result = Self { end: End::new(cache), start, indices: Kept::nothing() };
        // SAFETY: O2.
        Ok(Begun(unsafe { new_in_place(cache.py(), result)? }))
    }
}

impl Begun<Py<MatchResult>> {
    /// Where the call is to write where it ended.
    pub fn handle(&mut self) -> &mut Handle {
        // SAFETY: O1: `self` is the only reference.
        unsafe { self.0.get().end.handle.get_mut() }
    }

    pub fn end(self) -> Py<MatchResult> {
        self.0
    }
}

#[pymethods]
impl MatchResult {
    /// Units matched, from the root.
    #[getter]
    fn length<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        number(py, self.end.handle().depth())
    }

    /// The deepest matched page, or the root.
    #[getter]
    fn node(&self, py: Python<'_>) -> PyResult<Py<Node>> {
        self.end.node(py)
    }

    /// The slots of this key's matched units, read-only. Made on first use.
    #[getter]
    fn indices(&self, py: Python<'_>) -> PyResult<Py<Slots>> {
        let make = || {
            let (handle, tree) = (self.end.handle(), &self.end.cache.get().tree);
            read_only(py, handle.depth() - self.start, |slots| gather(py, tree, handle, self.start, slots))
        };
        self.indices.get_or_make(py, make)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        shown(py, format_args!("MatchResult(length={})", self.end.handle().depth()))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_copied("MatchResult"))
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(not_copied("MatchResult"))
    }
}

/// What `match_prefix_many` found, for n keys.
#[pyclass(frozen, module = "triradix.rust_impl")]
pub struct BatchMatchResult {
    cache: Py<RadixCache>,
    handles: Late<Vec<Handle>>,
    lengths: Kept<Slots>,
    offsets: Kept<Slots>,
    nodes: Kept<PyTuple>,
    indices: Kept<Slots>,
}

impl Begun<Py<BatchMatchResult>> {
    pub fn end(self, handles: Vec<Handle>) -> Py<BatchMatchResult> {
        // SAFETY: O1: `self` is the only reference, and gone now.
        *unsafe { self.0.get().handles.get_mut() } = handles;
        self.0
    }
}

impl BatchMatchResult {
    pub fn begin(cache: &Bound<'_, RadixCache>) -> PyResult<Begun<Py<Self>>> {
        let result = Self {
            cache: cache.clone().unbind(),
            handles: Late::new(Vec::new()),
            lengths: Kept::nothing(),
            offsets: Kept::nothing(),
            nodes: Kept::nothing(),
            indices: Kept::nothing(),
        };
        Ok(Begun(Py::new(cache.py(), result)?))
    }

    fn handles(&self) -> &[Handle] {
        self.handles.get()
    }

    fn refuse_stale(&self, py: Python<'_>) -> PyResult<()> {
        let (tree, handles) = (&self.cache.get().tree, self.handles());
        let alive = |tree: &Tree| handles.iter().try_for_each(|handle| tree.locate(handle).map(drop));
        tree.read(py, alive)?.map_err(|refusal| failure(py, refusal))
    }

    fn depths(&self) -> impl Iterator<Item = usize> {
        self.handles().iter().map(Handle::depth)
    }
}

#[pymethods]
impl BatchMatchResult {
    /// Units matched, of each key; read-only.
    #[getter]
    fn lengths(&self, py: Python<'_>) -> PyResult<Py<Slots>> {
        let make = || collected(py, self.handles().len(), self.depths());
        self.lengths.get_or_make(py, make)
    }

    /// The deepest matched page of each key.
    #[getter]
    fn nodes(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let make = || {
            let node = |handle: &Handle| {
                let node = Node { cache: self.cache.clone_ref(py), handle: handle.clone() };
                Ok(Bound::new(py, node)?.into_any())
            };
            Ok::<_, PyErr>(tuple(py, self.handles().iter().map(node))?.unbind())
        };
        self.nodes.get_or_make(py, make)
    }

    /// The slots of all keys one after the other, read-only. Made on first use.
    #[getter]
    fn indices(&self, py: Python<'_>) -> PyResult<Py<Slots>> {
        let make = || {
            let (tree, handles) = (&self.cache.get().tree, self.handles());
            let gather = |mut slots: &mut [MaybeUninit<i64>]| {
                // In one piece, so that either all nodes are alive or it fails.
                let gathered = tree.detach(py, |tree| {
                    tree.read(|tree| {
                        for handle in handles {
                            let part = slots.split_off_mut(..handle.depth()).unwrap_or_default();
                            tree.path_indices(handle, 0, part)?;
                        }
                        Ok::<_, Failure>(())
                    })
                });
                gathered?.map_err(|refusal| failure(py, refusal))
            };
            read_only(py, self.depths().sum(), gather)
        };
        self.indices.get_or_make(py, make)
    }

    /// Where each key's slots begin in `indices`, and the end of the last; read-only.
    #[getter]
    fn offsets(&self, py: Python<'_>) -> PyResult<Py<Slots>> {
        let make = || {
            self.refuse_stale(py)?;
            let ends = self.depths().scan(0, |end, depth| {
                *end += depth;
                Some(*end)
            });
            let offsets = std::iter::once(0).chain(ends);
            collected(py, self.handles().len() + 1, offsets)
        };
        self.offsets.get_or_make(py, make)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        shown(py, format_args!("BatchMatchResult({} keys)", self.handles().len()))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_copied("BatchMatchResult"))
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(not_copied("BatchMatchResult"))
    }
}

/// What `insert` did.
#[pyclass(frozen, module = "triradix.rust_impl")]
pub struct InsertResult {
    end: End,
    prefix_len: Late<usize>,
}

impl InsertResult {
    pub fn begin(cache: &Bound<'_, RadixCache>) -> PyResult<Begun<Py<Self>>> {
        let result = Self { end: End::new(cache), prefix_len: Late::new(0) };
        // SAFETY: O2.
        Ok(Begun(unsafe { new_in_place(cache.py(), result)? }))
    }
}

impl Begun<Py<InsertResult>> {
    pub fn end(self, inserted: Inserted) -> Py<InsertResult> {
        let result = self.0.get();
        // SAFETY: O1: `self` is the only reference, and gone now.
        *unsafe { result.end.handle.get_mut() } = inserted.handle;
        // SAFETY: O1, as above.
        *unsafe { result.prefix_len.get_mut() } = inserted.prefix_len;
        self.0
    }
}

#[pymethods]
impl InsertResult {
    /// Units that were cached already, from the root.
    #[getter]
    fn prefix_len<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        number(py, *self.prefix_len.get())
    }

    /// Units that are cached now: the key cut to whole pages, from the root.
    #[getter]
    fn length<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        number(py, self.end.handle().depth())
    }

    /// The last page of the key, or the root.
    #[getter]
    fn node(&self, py: Python<'_>) -> PyResult<Py<Node>> {
        self.end.node(py)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        shown(
            py,
            format_args!("InsertResult(prefix_len={}, length={})", self.prefix_len.get(), self.end.handle().depth()),
        )
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_copied("InsertResult"))
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(not_copied("InsertResult"))
    }
}

/// What `evict` freed.
#[pyclass(frozen, module = "triradix.rust_impl")]
pub struct EvictResult {
    num_tokens: Late<usize>,
    /// As the eviction has filled it, where it was known beforehand how many would go.
    array: Late<Option<Py<Slots>>>,
    /// Else what it freed, until that is in an array.
    slots: Mutex<Vec<i64>>,
    indices: Kept<Slots>,
}

impl EvictResult {
    pub fn begin(py: Python<'_>) -> PyResult<Begun<Py<Self>>> {
        let result = Self {
            num_tokens: Late::new(0),
            array: Late::new(None),
            slots: Mutex::new(Vec::new()),
            indices: Kept::nothing(),
        };
        // SAFETY: O2.
        Ok(Begun(unsafe { new_in_place(py, result)? }))
    }
}

impl Begun<Py<EvictResult>> {
    pub fn end_with(self, freed: usize, array: Py<Slots>) -> Py<EvictResult> {
        let result = self.0.get();
        // SAFETY: O1: `self` is the only reference, and gone now.
        *unsafe { result.num_tokens.get_mut() } = freed;
        // SAFETY: O1.
        *unsafe { result.array.get_mut() } = Some(array);
        self.0
    }

    pub fn end(self, evicted: Evicted) -> Py<EvictResult> {
        let result = self.0.get();
        // SAFETY: O1: `self` is the only reference, and gone now.
        *unsafe { result.num_tokens.get_mut() } = evicted.slots.len();
        *result.slots.lock().unwrap_or_else(PoisonError::into_inner) = evicted.slots;
        self.0
    }
}

#[pymethods]
impl EvictResult {
    /// Units freed.
    #[getter]
    fn num_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        number(py, *self.num_tokens.get())
    }

    /// Their slots: page by page in the order of eviction, in token order within a page.
    #[getter]
    fn indices(&self, py: Python<'_>) -> PyResult<Py<Slots>> {
        if let Some(made) = self.array.get() {
            return Ok(made.clone_ref(py));
        }
        let make = || {
            let fill = |elements: &mut [MaybeUninit<i64>]| {
                let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
                if slots.len() == elements.len() {
                    copy(&slots, elements);
                } else {
                    // Another thread has made the array meanwhile, and this one is dropped.
                    elements.fill(MaybeUninit::new(0));
                }
                Ok(())
            };
            Ok::<_, PyErr>(filled(py, *self.num_tokens.get(), fill)?.unbind())
        };
        let made = self.indices.get_or_make(py, make)?;
        *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
        Ok(made)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        shown(py, format_args!("EvictResult(num_tokens={})", self.num_tokens.get()))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_copied("EvictResult"))
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(not_copied("EvictResult"))
    }
}

/// The slots of a path from unit `from` on.
pub fn path_slots<'py>(cache: &Bound<'py, RadixCache>, handle: &Handle, from: usize) -> PyResult<Bound<'py, Slots>> {
    let py = cache.py();
    filled(py, handle.depth().saturating_sub(from), |slots| gather(py, &cache.get().tree, handle, from, slots))
}

fn gather(
    py: Python<'_>,
    tree: &Exclusive,
    handle: &Handle,
    from: usize,
    slots: &mut [MaybeUninit<i64>],
) -> PyResult<()> {
    tree.read(py, |tree| tree.path_indices(handle, from, slots))?.map_err(|refusal| failure(py, refusal))
}

fn shown<'py>(py: Python<'py>, what: Arguments) -> PyResult<Bound<'py, PyString>> {
    text(py, &formatted(what).map_err(no_memory)?)
}

/// As many numbers as `count` says, read-only.
fn collected(py: Python<'_>, count: usize, numbers: impl Iterator<Item = usize>) -> PyResult<Py<Slots>> {
    read_only(py, count, |elements| {
        let mut numbers = numbers;
        for element in elements {
            element.write(numbers.next().map_or(0, |number| number as i64));
        }
        Ok(())
    })
}

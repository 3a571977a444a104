//! What the operations return. Light classes: nodes and arrays are made when they are asked for.

use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple};

use super::arrays::{Slots, filled, read_only};
use super::cache::RadixCache;
use super::errors::{broken, failure, not_copied};
use super::fork::detached;
use super::nodes::Node;
use super::objects::{text, tuple};
use crate::core::{Evicted, Failure, Handle, Inserted, Tree};

/// Found or inserted: the cache, where the call ended, and the node once it was asked for.
struct End {
    cache: Py<RadixCache>,
    /// Empty until the call that made the result has ended: a result is made before the tree changes, since making it
    /// can fail.
    handle: OnceLock<Handle>,
    node: PyOnceLock<Py<Node>>,
}

impl End {
    fn new(cache: &Bound<'_, RadixCache>) -> Self {
        Self { cache: cache.clone().unbind(), handle: OnceLock::new(), node: PyOnceLock::new() }
    }

    fn handle(&self) -> &Handle {
        ended(&self.handle)
    }

    fn node(&self, py: Python<'_>) -> PyResult<Py<Node>> {
        let make = || Py::new(py, Node { cache: self.cache.clone_ref(py), handle: self.handle().clone() });
        Ok(self.node.get_or_try_init(py, make)?.clone_ref(py))
    }
}

fn ended<T>(cell: &OnceLock<T>) -> &T {
    cell.get().unwrap_or_else(|| unreachable!("a caller gets no result before its call has ended"))
}

fn end<T>(cell: &OnceLock<T>, value: T) {
    if cell.set(value).is_err() {
        unreachable!("one call ends once");
    }
}

/// What `match_prefix` found.
#[pyclass(frozen, module = "triradix.rust_impl")]
pub struct MatchResult {
    end: End,
    start: usize,
    indices: PyOnceLock<Py<Slots>>,
}

impl MatchResult {
    pub fn new(cache: &Bound<'_, RadixCache>, start: usize) -> Self {
        Self { end: End::new(cache), start, indices: PyOnceLock::new() }
    }

    pub fn end(&self, handle: Handle) {
        end(&self.end.handle, handle);
    }
}

#[pymethods]
impl MatchResult {
    /// Units matched, from the root.
    #[getter]
    fn length(&self) -> usize {
        self.end.handle().depth()
    }

    /// The deepest matched page, or the root.
    #[getter]
    fn node(&self, py: Python<'_>) -> PyResult<Py<Node>> {
        self.end.node(py)
    }

    /// The slots of this key's matched units, read-only. Made on first use.
    #[getter]
    fn indices(&self, py: Python<'_>) -> PyResult<Py<Slots>> {
        let make = || path_slots(self.end.cache.bind(py), self.end.handle(), self.start).and_then(read_only);
        Ok(self.indices.get_or_try_init(py, make)?.clone_ref(py))
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, &format!("MatchResult(length={})", self.length()))
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
    handles: OnceLock<Vec<Handle>>,
    lengths: PyOnceLock<Py<Slots>>,
    offsets: PyOnceLock<Py<Slots>>,
    nodes: PyOnceLock<Py<PyTuple>>,
    indices: PyOnceLock<Py<Slots>>,
}

impl BatchMatchResult {
    pub fn new(cache: &Bound<'_, RadixCache>) -> Self {
        Self {
            cache: cache.clone().unbind(),
            handles: OnceLock::new(),
            lengths: PyOnceLock::new(),
            offsets: PyOnceLock::new(),
            nodes: PyOnceLock::new(),
            indices: PyOnceLock::new(),
        }
    }

    pub fn end(&self, handles: Vec<Handle>) {
        end(&self.handles, handles);
    }

    fn handles(&self) -> &[Handle] {
        ended::<Vec<Handle>>(&self.handles)
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
        let make = || collected(py, self.handles().len(), self.depths()).and_then(read_only);
        Ok(self.lengths.get_or_try_init(py, make)?.clone_ref(py))
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
        Ok(self.nodes.get_or_try_init(py, make)?.clone_ref(py))
    }

    /// The slots of all keys one after the other, read-only. Made on first use.
    #[getter]
    fn indices(&self, py: Python<'_>) -> PyResult<Py<Slots>> {
        let make = || {
            let (tree, handles) = (&self.cache.get().tree, self.handles());
            let gather = |mut slots: &mut [i64]| {
                // In one piece, so that either all nodes are alive or it fails.
                let gathered = detached(py, || {
                    tree.read_detached(|tree| {
                        for handle in handles {
                            let part = slots.split_off_mut(..handle.depth()).unwrap_or_default();
                            tree.path_indices(handle, 0, part)?;
                        }
                        Ok::<_, Failure>(())
                    })
                });
                gathered.map_err(|fault| broken(py, fault))?.map_err(|refusal| failure(py, refusal))
            };
            filled(py, self.depths().sum(), gather).and_then(read_only)
        };
        Ok(self.indices.get_or_try_init(py, make)?.clone_ref(py))
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
            collected(py, self.handles().len() + 1, offsets).and_then(read_only)
        };
        Ok(self.offsets.get_or_try_init(py, make)?.clone_ref(py))
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, &format!("BatchMatchResult({} keys)", self.handles().len()))
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
    prefix_len: OnceLock<usize>,
}

impl InsertResult {
    pub fn new(cache: &Bound<'_, RadixCache>) -> Self {
        Self { end: End::new(cache), prefix_len: OnceLock::new() }
    }

    pub fn end(&self, inserted: Inserted) {
        end(&self.end.handle, inserted.handle);
        end(&self.prefix_len, inserted.prefix_len);
    }
}

#[pymethods]
impl InsertResult {
    /// Units that were cached already, from the root.
    #[getter]
    fn prefix_len(&self) -> usize {
        *ended(&self.prefix_len)
    }

    /// Units that are cached now: the key cut to whole pages, from the root.
    #[getter]
    fn length(&self) -> usize {
        self.end.handle().depth()
    }

    /// The last page of the key, or the root.
    #[getter]
    fn node(&self, py: Python<'_>) -> PyResult<Py<Node>> {
        self.end.node(py)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, &format!("InsertResult(prefix_len={}, length={})", self.prefix_len(), self.length()))
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
    num_tokens: OnceLock<usize>,
    /// Until they are in the array.
    slots: Mutex<Vec<i64>>,
    indices: PyOnceLock<Py<Slots>>,
}

impl EvictResult {
    pub fn new() -> Self {
        Self { num_tokens: OnceLock::new(), slots: Mutex::new(Vec::new()), indices: PyOnceLock::new() }
    }

    pub fn end(&self, evicted: Evicted) {
        end(&self.num_tokens, evicted.slots.len());
        *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = evicted.slots;
    }
}

#[pymethods]
impl EvictResult {
    /// Units freed.
    #[getter]
    fn num_tokens(&self) -> usize {
        *ended(&self.num_tokens)
    }

    /// Their slots: page by page in the order of eviction, in token order within a page. Made on first use.
    #[getter]
    fn indices(&self, py: Python<'_>) -> PyResult<Py<Slots>> {
        if let Some(made) = self.indices.get(py) {
            return Ok(made.clone_ref(py));
        }
        let make = || {
            let fill = |elements: &mut [i64]| {
                let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
                // Without slots another thread has made the array meanwhile, and this one is dropped.
                if slots.len() == elements.len() {
                    elements.copy_from_slice(&slots);
                }
                Ok(())
            };
            Ok::<_, PyErr>(filled(py, self.num_tokens(), fill)?.unbind())
        };
        let made = self.indices.get_or_try_init(py, make)?.clone_ref(py);
        *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
        Ok(made)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        text(py, &format!("EvictResult(num_tokens={})", self.num_tokens()))
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
    filled(py, handle.depth().saturating_sub(from), |slots| {
        let gathered = cache.get().tree.read(py, |tree| tree.path_indices(handle, from, slots))?;
        gathered.map_err(|refusal| failure(py, refusal))
    })
}

fn collected<'py>(py: Python<'py>, count: usize, numbers: impl Iterator<Item = usize>) -> PyResult<Bound<'py, Slots>> {
    filled(py, count, |elements| {
        elements.iter_mut().zip(numbers).for_each(|(element, number)| *element = number as i64);
        Ok(())
    })
}

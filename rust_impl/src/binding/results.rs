//! What the operations return. Light classes: nodes and arrays are made when they are asked for.

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use super::cache::RadixCache;
use super::errors::{failure, no_memory, not_copied};
use super::fork::detached;
use super::nodes::Node;
use crate::core::{Evicted, Failure, Handle};

pub type Slots = PyArray1<i64>;

/// Found or inserted: the cache, where the call ended, and the node once it was asked for.
struct End {
    cache: Py<RadixCache>,
    handle: Handle,
    node: PyOnceLock<Py<Node>>,
}

impl End {
    fn new(cache: &Bound<'_, RadixCache>, handle: Handle) -> Self {
        Self { cache: cache.clone().unbind(), handle, node: PyOnceLock::new() }
    }

    fn node(&self, py: Python<'_>) -> PyResult<Py<Node>> {
        let make = || Py::new(py, Node { cache: self.cache.clone_ref(py), handle: self.handle.clone() });
        Ok(self.node.get_or_try_init(py, make)?.clone_ref(py))
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
    pub fn new(cache: &Bound<'_, RadixCache>, handle: Handle, start: usize) -> Self {
        Self { end: End::new(cache, handle), start, indices: PyOnceLock::new() }
    }
}

#[pymethods]
impl MatchResult {
    /// Units matched, from the root.
    #[getter]
    fn length(&self) -> usize {
        self.end.handle.depth()
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
            let mut slots = Vec::new();
            let work = |slots: &mut _| {
                self.end.cache.get().tree.read(py, |tree| tree.path_indices(&self.end.handle, self.start, slots))
            };
            work(&mut slots)?.map_err(|refusal| failure(py, refusal))?;
            Ok::<_, PyErr>(read_only(py, slots))
        };
        Ok(self.indices.get_or_try_init(py, make)?.clone_ref(py))
    }

    fn __repr__(&self) -> String {
        format!("MatchResult(length={})", self.length())
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
    handles: Vec<Handle>,
    lengths: PyOnceLock<Py<Slots>>,
    offsets: PyOnceLock<Py<Slots>>,
    nodes: PyOnceLock<Py<PyTuple>>,
    indices: PyOnceLock<Py<Slots>>,
}

impl BatchMatchResult {
    pub fn new(cache: &Bound<'_, RadixCache>, handles: Vec<Handle>) -> Self {
        Self {
            cache: cache.clone().unbind(),
            handles,
            lengths: PyOnceLock::new(),
            offsets: PyOnceLock::new(),
            nodes: PyOnceLock::new(),
            indices: PyOnceLock::new(),
        }
    }

    fn depths(&self) -> impl Iterator<Item = i64> {
        self.handles.iter().map(|handle| handle.depth() as i64)
    }
}

#[pymethods]
impl BatchMatchResult {
    /// Units matched, of each key; read-only.
    #[getter]
    fn lengths(&self, py: Python<'_>) -> PyResult<Py<Slots>> {
        let make = || Ok::<_, PyErr>(read_only(py, collect(self.handles.len(), self.depths())?));
        Ok(self.lengths.get_or_try_init(py, make)?.clone_ref(py))
    }

    /// The deepest matched page of each key.
    #[getter]
    fn nodes(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let make = || {
            let node = |handle: &Handle| Py::new(py, Node { cache: self.cache.clone_ref(py), handle: handle.clone() });
            let mut nodes = Vec::new();
            nodes.try_reserve_exact(self.handles.len()).map_err(|error| no_memory(error.into()))?;
            for handle in &self.handles {
                nodes.push(node(handle)?);
            }
            Ok::<_, PyErr>(PyTuple::new(py, nodes)?.unbind())
        };
        Ok(self.nodes.get_or_try_init(py, make)?.clone_ref(py))
    }

    /// The slots of all keys one after the other, read-only. Made on first use.
    #[getter]
    fn indices(&self, py: Python<'_>) -> PyResult<Py<Slots>> {
        let make = || {
            let tree = &self.cache.get().tree;
            let handles = &self.handles;
            // In one piece, so that either all nodes are alive or it fails.
            let gathered = detached(py, || {
                tree.read_detached(|tree| {
                    let mut slots = Vec::new();
                    for handle in handles {
                        tree.path_indices(handle, 0, &mut slots)?;
                    }
                    Ok::<_, Failure>(slots)
                })
            });
            let gathered = gathered.map_err(|fault| super::errors::broken(py, fault))?;
            Ok::<_, PyErr>(read_only(py, gathered.map_err(|refusal| failure(py, refusal))?))
        };
        Ok(self.indices.get_or_try_init(py, make)?.clone_ref(py))
    }

    /// Where each key's slots begin in `indices`, and the end of the last; read-only.
    #[getter]
    fn offsets(&self, py: Python<'_>) -> PyResult<Py<Slots>> {
        let make = || {
            let ends = self.depths().scan(0, |end, depth| {
                *end += depth;
                Some(*end)
            });
            let offsets = std::iter::once(0).chain(ends);
            Ok::<_, PyErr>(read_only(py, collect(self.handles.len() + 1, offsets)?))
        };
        Ok(self.offsets.get_or_try_init(py, make)?.clone_ref(py))
    }

    fn __repr__(&self) -> String {
        format!("BatchMatchResult({} keys)", self.handles.len())
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
    prefix_len: usize,
}

impl InsertResult {
    pub fn new(cache: &Bound<'_, RadixCache>, handle: Handle, prefix_len: usize) -> Self {
        Self { end: End::new(cache, handle), prefix_len }
    }
}

#[pymethods]
impl InsertResult {
    /// Units that were cached already, from the root.
    #[getter]
    fn prefix_len(&self) -> usize {
        self.prefix_len
    }

    /// Units that are cached now: the key cut to whole pages, from the root.
    #[getter]
    fn length(&self) -> usize {
        self.end.handle.depth()
    }

    /// The last page of the key, or the root.
    #[getter]
    fn node(&self, py: Python<'_>) -> PyResult<Py<Node>> {
        self.end.node(py)
    }

    fn __repr__(&self) -> String {
        format!("InsertResult(prefix_len={}, length={})", self.prefix_len, self.length())
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
    num_tokens: usize,
    indices: Py<Slots>,
}

impl EvictResult {
    pub fn new(py: Python<'_>, evicted: Evicted) -> Self {
        Self { num_tokens: evicted.slots.len(), indices: PyArray1::from_vec(py, evicted.slots).unbind() }
    }
}

#[pymethods]
impl EvictResult {
    /// Units freed.
    #[getter]
    fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    /// Their slots: page by page in the order of eviction, in token order within a page.
    #[getter]
    fn indices(&self, py: Python<'_>) -> Py<Slots> {
        self.indices.clone_ref(py)
    }

    fn __repr__(&self) -> String {
        format!("EvictResult(num_tokens={})", self.num_tokens)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_copied("EvictResult"))
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(not_copied("EvictResult"))
    }
}

fn read_only(py: Python<'_>, numbers: Vec<i64>) -> Py<Slots> {
    let array = PyArray1::from_vec(py, numbers);
    array.readwrite().make_nonwriteable();
    array.unbind()
}

fn collect(count: usize, numbers: impl Iterator<Item = i64>) -> PyResult<Vec<i64>> {
    let mut collected = Vec::new();
    collected.try_reserve_exact(count).map_err(|error| no_memory(error.into()))?;
    collected.extend(numbers);
    Ok(collected)
}

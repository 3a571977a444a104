//! Nodes: what a caller holds of a page or a root.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::arguments::shown_namespace;
use super::cache::RadixCache;
use super::errors::{failure, no_memory, not_copied, type_error, value_error};
use super::objects::{number, text};
use super::shared::shared;
use crate::core::{Handle, formatted};

/// A handle to one cached page, or to the root of a namespace. It keeps its cache alive, but not its page.
#[pyclass(frozen, module = "triradix.rust_impl")]
pub struct Node {
    pub cache: Py<RadixCache>,
    pub handle: Handle,
}

impl Node {
    fn refuse_stale(&self, py: Python<'_>) -> PyResult<()> {
        let found = self.cache.get().tree.read(py, |tree| tree.locate(&self.handle).map(drop))?;
        found.map_err(|refusal| failure(py, refusal))
    }
}

#[pymethods]
impl Node {
    /// Units from the root to the end of this page; 0 for a root.
    #[getter]
    fn length<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        number(py, self.handle.depth())
    }

    /// Whether this is the root of a namespace.
    #[getter]
    fn is_root(&self, py: Python<'_>) -> PyResult<bool> {
        self.refuse_stale(py)?;
        Ok(self.handle.is_root())
    }

    /// The namespace: None for the default one, else the pair (extra_key, cache_salt).
    #[getter]
    fn extra_key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.refuse_stale(py)?;
        shown_namespace(py, self.handle.namespace())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Node>().is_ok_and(|other| {
            let other = other.get();
            self.cache.is(&other.cache) && self.handle == other.handle
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.handle.hash(&mut hasher);
        (self.cache.as_ptr() as usize).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let stale = if self.refuse_stale(py).is_err() { ", stale" } else { "" };
        let depth = self.handle.depth();
        let shown = match self.handle.namespace() {
            None => formatted(format_args!("Node(length={depth}{stale})")),
            name => {
                let name = shown_namespace(py, name)?.repr()?;
                formatted(format_args!("Node(length={depth}, extra_key={name}{stale})"))
            }
        };
        text(py, &shown.map_err(no_memory)?)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_copied("Node"))
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(not_copied("Node"))
    }
}

/// The handle of a node of this cache.
pub fn own<'a>(cache: &Bound<'_, RadixCache>, node: &'a Bound<'_, PyAny>, name: &str) -> PyResult<&'a Handle> {
    let py = cache.py();
    if let Ok(node) = node.cast::<Node>() {
        let node = node.get();
        if node.cache.is(cache) {
            return Ok(&node.handle);
        }
    } else if !node.is_instance(shared(py)?.node.bind(py))? {
        return Err(type_error(format_args!("{name} must be a Node, not {}", node.get_type().name()?)));
    }
    Err(value_error(format_args!("{name} belongs to another cache")))
}

/// The same for the `start` of a look-up or an insert.
pub fn start_of<'a>(
    cache: &Bound<'_, RadixCache>,
    start: Option<&'a Bound<'_, PyAny>>,
) -> PyResult<Option<&'a Handle>> {
    start.map(|start| own(cache, start, "start")).transpose()
}

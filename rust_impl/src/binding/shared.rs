//! What the binding takes from the shared Python package: types, errors, events and the checks of rare arguments.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyType};

pub struct Shared {
    pub shown: Py<PyAny>,
    pub tell: Py<PyAny>,
    pub as_int64: Py<PyAny>,
    pub as_count: Py<PyAny>,
    pub as_threads: Py<PyAny>,
    pub as_namespace: Py<PyAny>,
    pub check_config: Py<PyAny>,
    pub prefix_key: Py<PyType>,
    pub node: Py<PyAny>,
    pub stale_node_error: Py<PyAny>,
    pub integrity_error: Py<PyAny>,
    pub block_stored: Py<PyAny>,
    pub block_removed: Py<PyAny>,
    pub all_blocks_cleared: Py<PyAny>,
    pub numpy_item: Py<PyAny>,
    pub numpy_integer: Py<PyAny>,
    pub numpy_timedelta: Py<PyAny>,
    pub sequence: Py<PyAny>,
    pub int_index: Py<PyAny>,
}

/// Imported when the module is loaded.
pub fn shared(py: Python<'_>) -> PyResult<&Shared> {
    static SHARED: PyOnceLock<Shared> = PyOnceLock::new();
    SHARED.get_or_try_init(py, || {
        let from = |module: &str, name: &str| Ok::<_, PyErr>(py.import(module)?.getattr(name)?.unbind());
        Ok(Shared {
            shown: from("triradix.arguments", "shown")?,
            tell: from("triradix.log", "tell")?,
            as_int64: from("triradix.arguments", "as_int64")?,
            as_count: from("triradix.arguments", "as_count")?,
            as_threads: from("triradix.arguments", "as_threads")?,
            as_namespace: from("triradix.arguments", "as_namespace")?,
            check_config: from("triradix.config", "check_config")?,
            prefix_key: from("triradix.keys", "PrefixKey")?.extract(py)?,
            node: from("triradix.results", "Node")?,
            stale_node_error: from("triradix.errors", "StaleNodeError")?,
            integrity_error: from("triradix.errors", "IntegrityError")?,
            block_stored: from("triradix.events", "BlockStored")?,
            block_removed: from("triradix.events", "BlockRemoved")?,
            all_blocks_cleared: from("triradix.events", "AllBlocksCleared")?,
            numpy_item: py.import("numpy")?.getattr("generic")?.getattr("item")?.unbind(),
            numpy_integer: from("numpy", "integer")?,
            numpy_timedelta: from("numpy", "timedelta64")?,
            sequence: from("collections.abc", "Sequence")?,
            int_index: py.get_type::<PyInt>().getattr("__index__")?.unbind(),
        })
    })
}

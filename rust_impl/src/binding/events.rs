//! From the tree's events to those of `triradix.events`.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::arguments::shown_namespace;
use super::shared::shared;
use crate::core::{Config, Event};

/// A list, grown element by element: to allocate a long one at once can fail, which PyO3 answers with a panic.
pub fn list<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    elements: impl Iterator<Item = PyResult<T>>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for element in elements {
        list.append(element?)?;
    }
    Ok(list)
}

pub fn shown_event<'py>(py: Python<'py>, event: &Event, config: &Config) -> PyResult<Bound<'py, PyAny>> {
    let shared = shared(py)?;
    match event {
        Event::Stored { hashes, parent, tokens, namespace } => {
            let units = if config.bigram {
                list(py, tokens.windows(2).map(|pair| PyTuple::new(py, pair)))?
            } else {
                list(py, tokens.iter().map(Ok))?
            };
            let (hashes, namespace) = (list(py, hashes.iter().map(Ok))?, shown_namespace(py, namespace)?);
            let medium = "GPU";
            let lora_id = py.None();
            let stored = shared.block_stored.bind(py);
            stored.call1((hashes, *parent, units, config.page_size, lora_id, medium, namespace))
        }
        Event::Removed { hashes } => shared.block_removed.bind(py).call1((list(py, hashes.iter().map(Ok))?,)),
        Event::Cleared => shared.all_blocks_cleared.bind(py).call0(),
    }
}

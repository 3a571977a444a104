//! From the tree's events to those of `triradix.events`.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::arguments::shown_namespace;
use super::shared::shared;
use crate::core::{Config, Event};

pub fn shown_event<'py>(py: Python<'py>, event: &Event, config: &Config) -> PyResult<Bound<'py, PyAny>> {
    let shared = shared(py)?;
    match event {
        Event::Stored { hashes, parent, tokens, namespace } => {
            let units = if config.bigram {
                let pairs = tokens.windows(2).map(|pair| PyTuple::new(py, pair));
                PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?)?
            } else {
                PyList::new(py, tokens)?
            };
            let (hashes, namespace) = (PyList::new(py, hashes)?, shown_namespace(py, namespace)?);
            let medium = "GPU";
            let lora_id = py.None();
            let stored = shared.block_stored.bind(py);
            stored.call1((hashes, *parent, units, config.page_size, lora_id, medium, namespace))
        }
        Event::Removed { hashes } => shared.block_removed.bind(py).call1((PyList::new(py, hashes)?,)),
        Event::Cleared => shared.all_blocks_cleared.bind(py).call0(),
    }
}

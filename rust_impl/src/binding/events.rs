//! From the tree's events to those of `triradix.events`.

use pyo3::prelude::*;

use super::arguments::shown_namespace;
use super::objects::{int, list, number, text, tuple};
use super::shared::shared;
use crate::core::{Config, Event};

pub fn shown_event<'py>(py: Python<'py>, event: &Event, config: &Config) -> PyResult<Bound<'py, PyAny>> {
    let shared = shared(py)?;
    let token = |&token: &u32| int(py, i64::from(token));
    let hash = |&hash: &i64| int(py, hash);
    match event {
        Event::Stored { hashes, parent, tokens, namespace } => {
            let units = if config.bigram {
                list(py, tokens.windows(2).map(|pair| Ok(tuple(py, pair.iter().map(token))?.into_any())))?
            } else {
                list(py, tokens.iter().map(token))?
            };
            let parent = parent.as_ref().map(hash).transpose()?;
            let (hashes, page_size) = (list(py, hashes.iter().map(hash))?, number(py, config.page_size)?);
            let (lora_id, medium) = (py.None(), text(py, "GPU")?);
            let namespace = shown_namespace(py, namespace)?;
            shared.block_stored.bind(py).call1((hashes, parent, units, page_size, lora_id, medium, namespace))
        }
        Event::Removed { hashes } => shared.block_removed.bind(py).call1((list(py, hashes.iter().map(hash))?,)),
        Event::Cleared => shared.all_blocks_cleared.bind(py).call0(),
    }
}

//! From the tree's events to those of `triradix.events`.
//!
//! They are made without a call of their `__init__`, which is Python and would take longer.

use pyo3::prelude::*;

use super::arguments::shown_namespace;
use super::objects::{instance, int, list, number, text, tuple};
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
            let namespace = shown_namespace(py, namespace)?;
            let parent = parent.unwrap_or_else(|| py.None().into_bound(py));
            let fields = [
                (c"block_hashes", hashes.into_any()),
                (c"parent_block_hash", parent),
                (c"token_ids", units.into_any()),
                (c"block_size", page_size),
                (c"lora_id", py.None().into_bound(py)),
                (c"medium", text(py, "GPU")?.into_any()),
                (c"extra_key", namespace),
            ];
            instance(shared.block_stored.bind(py), fields)
        }
        Event::Removed { hashes } => {
            let hashes = list(py, hashes.iter().map(hash))?.into_any();
            let fields = [(c"block_hashes", hashes), (c"medium", text(py, "GPU")?.into_any())];
            instance(shared.block_removed.bind(py), fields)
        }
        Event::Cleared => instance(shared.all_blocks_cleared.bind(py), []),
    }
}

//! What the Rust tree remembers of a `PrefixKey`: where its tokens are, and the page where it was found last.
//!
//! A page means the same tokens for ever, so a key that was found there once begins with them: as long as the page
//! exists, the next look-up goes on below it. A request that waits in a queue pays for what is new.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::buffer::Elements;
use crate::core::Handle;

#[pyclass(frozen, module = "triradix.rust_impl")]
pub struct Memo {
    /// The array of the tokens, which nobody changes or moves.
    _tokens: Py<PyAny>,
    elements: Elements,
    last: Mutex<Option<Remembered>>,
}

struct Remembered {
    /// Not a reference, which would keep the cache alive: no two caches of a process have the same number.
    cache: u64,
    handle: Handle,
}

impl Memo {
    pub const fn elements(&self) -> Elements {
        self.elements
    }

    /// The page of that cache where the key was found last.
    pub fn recall(&self, cache: u64) -> Option<Handle> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|last| last.cache == cache).map(|last| last.handle.clone())
    }

    pub fn remember(&self, cache: u64, handle: &Handle) {
        if !handle.is_root() {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some(Remembered { cache, handle: handle.clone() });
        }
    }

    /// The memo of that `PrefixKey`, if it has been used before.
    pub fn of<'py>(key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Memo>>> {
        let py = key.py();
        Self::in_dict(key.getattr(memo_name(py))?.cast::<PyDict>()?)
    }

    fn in_dict<'py>(memos: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, Memo>>> {
        let found = memos.get_item(own_name(memos.py()))?;
        Ok(found.and_then(|memo| memo.cast_into::<Memo>().ok()))
    }

    /// Makes the memo of a key that is used for the first time. What the key that it was made from was found at is
    /// known of it too, as far as they share tokens.
    pub fn make<'py>(
        key: &Bound<'py, PyAny>,
        tokens: &Bound<'py, PyAny>,
        elements: Elements,
    ) -> PyResult<Bound<'py, Memo>> {
        let py = key.py();
        let mut last = None;
        if let Ok(origin) = key.getattr(origin_name(py))?.cast::<PyTuple>() {
            let shared: usize = origin.get_item(1)?.extract()?;
            if let Some(memo) = Self::in_dict(origin.get_item(0)?.cast::<PyDict>()?)? {
                let known = memo.get().last.lock().unwrap_or_else(PoisonError::into_inner);
                // One token more than units, in case units are pairs.
                let known = known.as_ref().filter(|known| known.handle.depth() < shared);
                last = known.map(|known| Remembered { cache: known.cache, handle: known.handle.clone() });
            }
        }
        let memo = Memo { _tokens: tokens.clone().unbind(), elements, last: Mutex::new(last) };
        let memo = Bound::new(py, memo)?;
        key.getattr(memo_name(py))?.cast::<PyDict>()?.set_item(own_name(py), &memo)?;
        Ok(memo)
    }
}

fn memo_name(py: Python<'_>) -> &Bound<'_, PyString> {
    pyo3::intern!(py, "memo")
}

fn origin_name(py: Python<'_>) -> &Bound<'_, PyString> {
    pyo3::intern!(py, "origin")
}

/// Of this tree, in the memo of a key.
fn own_name(py: Python<'_>) -> &Bound<'_, PyString> {
    pyo3::intern!(py, "rust")
}

/// Makes what the first key would need: where there is no memory for a name then, PyO3 panics.
pub fn prepare(py: Python<'_>) {
    let _ = (memo_name(py), origin_name(py), own_name(py), py.get_type::<Memo>());
}

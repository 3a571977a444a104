//! Handing over to `triradix.log` what the trees noted.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use super::objects::{int, list, number, text, tuple};
use super::shared::shared;
use crate::core::log::{self, Note};

/// Sets the bits of what the trees are to note.
#[pyfunction]
pub fn listen(kinds: u32) {
    log::listen(kinds);
}

/// Between operations.
#[inline]
pub fn hand_over(py: Python<'_>) -> PyResult<()> {
    if log::is_listening() { hand_over_notes(py) } else { Ok(()) }
}

#[cold]
fn hand_over_notes(py: Python<'_>) -> PyResult<()> {
    match tell(py, &log::take_notes()) {
        // The operation is done: without memory nobody is told.
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(()),
        told => told,
    }
}

fn tell(py: Python<'_>, notes: &[Note]) -> PyResult<()> {
    if notes.is_empty() {
        return Ok(());
    }
    let shown = notes.iter().map(|note| {
        let parts = [int(py, note.kind as i64)?, number(py, note.first)?, number(py, note.second)?];
        Ok(tuple(py, parts.into_iter().map(Ok))?.into_any())
    });
    shared(py)?.tell.bind(py).call1((text(py, "rust")?, list(py, shown)?)).map(drop)
}

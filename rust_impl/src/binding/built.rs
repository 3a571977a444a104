//! How this tree was built: what `triradix doctor` shows of it.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::objects::{dict, text};
use crate::core::loops_name;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What stands in another version of the package is not what this module takes from it.
pub fn refuse_other_versions(py: Python<'_>) -> PyResult<()> {
    let package: String = py.import("triradix")?.getattr("__version__")?.extract()?;
    if package == VERSION {
        return Ok(());
    }
    Err(PyImportError::new_err(format!(
        "the rust tree is of version {VERSION} and triradix of {package}; they must be the same: pip install \
         --force-reinstall 'triradix[rust]=={package}', or in a checkout: make build"
    )))
}

/// ``version``; ``profile``, release or debug; ``compiler``; ``cpu``, the loops that this processor runs; ``abi``.
#[pyfunction]
pub fn build_info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // What is made for one version alone loads in no other.
    let minor = py.version_info().minor;
    let abi = if cfg!(Py_LIMITED_API) { "abi3".to_owned() } else { format!("cp3{minor}") };
    let slow = cfg!(debug_assertions) || env!("BUILT_OPT_LEVEL") == "0";
    let entry = |value: &str| Ok::<_, PyErr>(text(py, value)?.into_any());
    dict(
        py,
        [
            (c"version", entry(VERSION)?),
            (c"profile", entry(if slow { "debug" } else { "release" })?),
            (c"compiler", entry(env!("BUILT_COMPILER"))?),
            (c"cpu", entry(loops_name())?),
            (c"abi", entry(&abi)?),
        ],
    )
}

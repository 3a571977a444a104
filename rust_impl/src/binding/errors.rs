//! From what the tree refuses to the exceptions of the protocol.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::objects::memory_error;
use super::shared::shared;
use crate::core::{Failure, NoMemory};

/// The call did not run to its end because of a fault in the tree itself, now or earlier.
pub struct Broken(pub String);

pub fn broken(py: Python<'_>, Broken(what): Broken) -> PyErr {
    let message = format!("the cache is broken by an internal error: {what}");
    match shared(py).and_then(|shared| shared.integrity_error.bind(py).call1((message,))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

pub fn no_memory(_: NoMemory) -> PyErr {
    // PyO3 would allocate for one.
    Python::attach(|py| memory_error(py, c"not enough memory for this call; the cache is unchanged"))
}

pub fn failure(py: Python<'_>, failure: Failure) -> PyErr {
    match failure {
        Failure::Stale => {
            let message = "this node is stale: its page was evicted, or the cache was reset";
            match shared(py).and_then(|shared| shared.stale_node_error.bind(py).call1((message,))) {
                Ok(error) => PyErr::from_value(error),
                Err(error) => error,
            }
        }
        Failure::OtherNamespace => PyValueError::new_err("extra_key is not the namespace of start"),
        Failure::NotJoined { last_token } => PyValueError::new_err(format!(
            "with bigram, a key below a node must begin with the node's last token, {last_token}"
        )),
        Failure::NotLocked => PyValueError::new_err("no lock of this node's page is left to take back"),
        Failure::TooManyLocks => PyValueError::new_err("this node's page has as many locks as can be counted"),
        // The caller of a look-up says it in the words of the key; this is for a key that was changed meanwhile.
        Failure::Outside { position } => PyValueError::new_err(format!("token {position} is outside 0 … 4294967295")),
        Failure::Raced => unreachable!("whoever finds a key changed copies it"),
        Failure::LogFull => unreachable!("whoever finds the touch log full drains it"),
        Failure::NoMemory => no_memory(NoMemory),
    }
}

/// The error of one element of a batch: same type, and which element it was.
pub fn at_element(py: Python<'_>, error: PyErr, name: &str, index: usize) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) && !error.is_instance_of::<PyValueError>(py) {
        return error;
    }
    let kind: Bound<'_, PyType> = if error.is_instance_of::<PyTypeError>(py) {
        py.get_type::<PyTypeError>()
    } else {
        py.get_type::<PyValueError>()
    };
    PyErr::from_type(kind, format!("{name}[{index}]: {}", error.value(py)))
}

/// For `__reduce_ex__`, which `copy` and `pickle` end in, and `__reduce__`.
pub fn not_copied(what: &str) -> PyErr {
    PyTypeError::new_err(format!("{what} objects can be neither copied nor pickled"))
}

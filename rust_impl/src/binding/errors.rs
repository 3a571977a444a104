//! From what the tree refuses to the exceptions of the protocol.

use std::fmt::Arguments;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::log::hand_over;
use super::objects::{memory_error, text};
use super::shared::shared;
use crate::core::log::{Kind, note};
use crate::core::{Failure, NoMemory, formatted};

/// The call did not run to its end because of a fault in the tree itself.
pub enum Broken {
    /// While nothing was being changed.
    Reading(String),
    /// Half-way through a change.
    Changing(String),
    /// Half-way through a change of an earlier call.
    Earlier,
}

/// An exception of that class. PyO3's own ways abort where there is no memory for the text: here that is MemoryError.
fn raised(class: &Bound<'_, PyAny>, what: Arguments) -> PyErr {
    let message = formatted(what).map_err(no_memory).and_then(|what| text(class.py(), &what));
    match message.and_then(|message| class.call1((message,))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

pub fn value_error(what: Arguments) -> PyErr {
    Python::attach(|py| raised(&py.get_type::<PyValueError>(), what))
}

pub fn type_error(what: Arguments) -> PyErr {
    Python::attach(|py| raised(&py.get_type::<PyTypeError>(), what))
}

impl From<Broken> for PyErr {
    fn from(fault: Broken) -> Self {
        Python::attach(|py| {
            let integrity_error = match shared(py) {
                Ok(shared) => shared.integrity_error.bind(py),
                Err(error) => return error,
            };
            if !matches!(fault, Broken::Earlier) {
                note(Kind::Failed, 0, 0);
                if let Err(error) = hand_over(py) {
                    return error;
                }
            }
            match fault {
                Broken::Reading(what) => {
                    raised(integrity_error, format_args!("an internal error, which left the cache as it was: {what}"))
                }
                Broken::Changing(what) => raised(
                    integrity_error,
                    format_args!("an internal error, which left the cache unusable until its reset(): {what}"),
                ),
                Broken::Earlier => raised(
                    integrity_error,
                    format_args!("the cache is unusable until its reset(): an earlier call met an internal error"),
                ),
            }
        })
    }
}

pub fn no_memory(_: NoMemory) -> PyErr {
    // PyO3 would allocate for one.
    Python::attach(|py| memory_error(py, c"not enough memory for this call; the cache is unchanged"))
}

pub fn failure(py: Python<'_>, failure: Failure) -> PyErr {
    match failure {
        Failure::Stale => {
            let what = format_args!("this node is stale: its page was evicted, or the cache was reset");
            shared(py).map_or_else(|error| error, |shared| raised(shared.stale_node_error.bind(py), what))
        }
        Failure::OtherNamespace => value_error(format_args!("extra_key is not the namespace of start")),
        Failure::NotJoined { last_token } => value_error(format_args!(
            "with bigram, a key below a node must begin with the node's last token, {last_token}"
        )),
        Failure::NotLocked => value_error(format_args!("no lock of this node's page is left to take back")),
        Failure::TooManyLocks => value_error(format_args!("this node's page has as many locks as can be counted")),
        // The caller of a look-up says it in the words of the key; this is for a key that was changed meanwhile.
        Failure::Outside { position } => value_error(format_args!("token {position} is outside 0 … 4294967295")),
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
    let what = format_args!("{name}[{index}]: {}", error.value(py));
    if error.is_instance_of::<PyTypeError>(py) { type_error(what) } else { value_error(what) }
}

/// For `__reduce_ex__`, which `copy` and `pickle` end in, and `__reduce__`.
pub fn not_copied(what: &str) -> PyErr {
    type_error(format_args!("{what} objects can be neither copied nor pickled"))
}

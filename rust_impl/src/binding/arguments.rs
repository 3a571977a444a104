//! Arguments that are not keys. The common forms are read here; the rest, and every error, is left to the functions
//! that all implementations share.

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use super::errors::no_memory;
use super::objects::{text, tuple};
use super::shared::shared;
use crate::core::Namespace;

/// Any number of zero and more; what lies beyond u64 is as good as its largest.
pub fn count(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    if let Ok(number) = value.cast_exact::<PyInt>()
        && let Ok(number) = number.extract::<u64>()
    {
        return Ok(number);
    }
    let number = shared(value.py())?.as_count.bind(value.py()).call1((value, name))?;
    Ok(number.extract::<u64>().unwrap_or(u64::MAX))
}

/// The same where no more than the address space matters.
pub fn length(value: &Bound<'_, PyAny>, name: &str) -> PyResult<usize> {
    Ok(usize::try_from(count(value, name)?).unwrap_or(usize::MAX))
}

pub fn int64(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    if let Ok(number) = value.cast_exact::<PyInt>()
        && let Ok(number) = number.extract::<i64>()
    {
        return Ok(number);
    }
    shared(value.py())?.as_int64.bind(value.py()).call1((value, name))?.extract()
}

/// How many may share the work, at most.
pub fn threads(value: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let Some(value) = value else { return Ok(usize::MAX) };
    if let Ok(number) = value.cast_exact::<PyInt>()
        && let Ok(number @ 1..) = number.extract::<usize>()
    {
        return Ok(number);
    }
    let checked = shared(value.py())?.as_threads.bind(value.py()).call1((value,))?;
    Ok(checked.extract().unwrap_or(usize::MAX))
}

/// None is the default namespace.
pub fn namespace(extra_key: &Bound<'_, PyAny>) -> PyResult<Option<Arc<Namespace>>> {
    if extra_key.is_none() {
        return Ok(None);
    }
    if let Ok(text) = extra_key.cast_exact::<PyString>()
        && let Ok(text) = text.to_str()
    {
        return counted(Namespace { extra_key: Some(boxed(text)?), cache_salt: None }).map(Some);
    }
    let py = extra_key.py();
    let pair = shared(py)?.as_namespace.bind(py).call1((extra_key,))?;
    let part = |index: usize| -> PyResult<Option<Box<str>>> {
        let part = pair.get_item(index)?;
        if part.is_none() { Ok(None) } else { boxed(part.cast::<PyString>()?.to_str()?).map(Some) }
    };
    let (extra_key, cache_salt) = (part(0)?, part(1)?);
    if extra_key.is_none() && cache_salt.is_none() {
        return Ok(None);
    }
    counted(Namespace { extra_key, cache_salt }).map(Some)
}

/// In an `Arc`, or MemoryError. `Arc::new` would abort, so a block of its size is asked for first: the allocator gives the
/// one that was just freed.
fn counted(namespace: Namespace) -> PyResult<Arc<Namespace>> {
    let mut block: Vec<[usize; 2]> = Vec::new();
    let size = size_of::<Namespace>().div_ceil(size_of::<[usize; 2]>()) + 1;
    block.try_reserve_exact(size).map_err(|error| no_memory(error.into()))?;
    drop(std::hint::black_box(block));
    Ok(Arc::new(namespace))
}

/// A copy, or MemoryError.
fn boxed(text: &str) -> PyResult<Box<str>> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).map_err(|error| no_memory(error.into()))?;
    copy.push_str(text);
    Ok(copy.into_boxed_str())
}

/// None, or the pair.
pub fn shown_namespace<'py>(py: Python<'py>, namespace: &Option<Arc<Namespace>>) -> PyResult<Bound<'py, PyAny>> {
    match namespace {
        None => Ok(py.None().into_bound(py)),
        Some(name) => {
            let part = |part: &Option<Box<str>>| match part {
                None => Ok(py.None().into_bound(py)),
                Some(part) => Ok(text(py, part)?.into_any()),
            };
            Ok(tuple(py, [&name.extra_key, &name.cache_salt].into_iter().map(part))?.into_any())
        }
    }
}

/// An argument with a default other than None, for which None stands for nothing.
pub enum Given<'py> {
    Default,
    Value(Bound<'py, PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = std::convert::Infallible;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> Result<Self, Self::Error> {
        Ok(Given::Value(value.to_owned()))
    }
}

impl<'py> Given<'py> {
    pub fn or<T>(self, default: T, read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>) -> PyResult<T> {
        match self {
            Given::Default => Ok(default),
            Given::Value(value) => read(&value),
        }
    }

    pub fn or_object<T: IntoPyObject<'py>>(self, py: Python<'py>, default: T) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Given::Default => default.into_bound_py_any(py),
            Given::Value(value) => Ok(value),
        }
    }
}

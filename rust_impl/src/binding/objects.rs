//! Plain Python objects, made so that a lack of memory is MemoryError: PyO3's own ways panic then.

use std::ffi::CStr;

use pyo3::PyClass;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

/// A new object of a frozen class, made in its place: `Py::new` moves it there twice.
///
/// # Safety
/// `holds_only` was true for the class.
#[inline]
pub unsafe fn new_in_place<T: PyClass<Frozen = True>>(py: Python<'_>, value: T) -> PyResult<Py<T>> {
    // SAFETY: a class without anything of PyO3's own is the header and then the value, which is written before anybody
    // sees it. Null with an error set if there is no memory.
    unsafe {
        let made = ffi::PyType_GenericAlloc(T::type_object_raw(py), 0);
        let object = Bound::from_owned_ptr_or_err(py, made);
        if !made.is_null() {
            made.add(1).cast::<T>().write(value);
        }
        Ok(object?.cast_into_unchecked::<T>().unbind())
    }
}

/// Whether objects of that class are the header and the value and nothing else.
pub fn holds_only<T: PyClass>(py: Python<'_>) -> bool {
    // SAFETY: the type object of a class is alive.
    let size = unsafe { (*T::type_object_raw(py)).tp_basicsize };
    size as usize == size_of::<ffi::PyObject>() + size_of::<T>() && align_of::<T>() <= align_of::<ffi::PyObject>()
}

pub fn int(py: Python<'_>, number: i64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new int, or null with an error set.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromLongLong(number)) }
}

/// Of a count or a length.
pub fn number(py: Python<'_>, number: usize) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: as in `int`.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromSize_t(number)) }
}

pub fn text<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: UTF-8 of that length; a new str, or null with an error set.
    unsafe {
        let made = ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as ffi::Py_ssize_t);
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked())
    }
}

/// Grown element by element, since nobody knows how many can be made.
pub fn list<'py>(
    py: Python<'py>,
    elements: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyList>> {
    // SAFETY: a new list, or null with an error set.
    let list: Bound<'py, PyList> =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyList_New(0))?.cast_into_unchecked() };
    for element in elements {
        list.append(element?)?;
    }
    Ok(list)
}

/// The items as they are stored, whatever a subclass says.
pub fn tuple_of<'py>(list: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyTuple>> {
    // SAFETY: a list; a new tuple, or null with an error set.
    unsafe { Ok(Bound::from_owned_ptr_or_err(list.py(), ffi::PyList_AsTuple(list.as_ptr()))?.cast_into_unchecked()) }
}

pub fn tuple<'py>(
    py: Python<'py>,
    elements: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyTuple>> {
    tuple_of(&list(py, elements)?)
}

pub fn dict<'py, const N: usize>(
    py: Python<'py>,
    entries: [(&CStr, Bound<'py, PyAny>); N],
) -> PyResult<Bound<'py, PyDict>> {
    // SAFETY: a new dict, or null with an error set.
    let dict: Bound<'py, PyDict> =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDict_New())?.cast_into_unchecked() };
    for (key, value) in entries {
        // SAFETY: the key is UTF-8 and both objects are live; -1 with an error set if it fails.
        if unsafe { ffi::PyDict_SetItemString(dict.as_ptr(), key.as_ptr(), value.as_ptr()) } != 0 {
            return Err(PyErr::fetch(py));
        }
    }
    Ok(dict)
}

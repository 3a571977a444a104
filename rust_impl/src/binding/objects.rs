//! Plain Python objects, made so that a lack of memory is MemoryError: PyO3's own ways panic then.
//!
//! Obligations of `unsafe`:
//!
//! O1. A function of Python's C interface is called attached (`py`, or an object, shows it), with live objects of the
//!     types that it asks for.
//! O2. What such a function returned is a new reference to an object of the type that is said, or null with an error
//!     set. Nobody else has taken the reference.
//! O3. Objects of the class are the header and the value and nothing else: `holds_only` is true.

use std::ffi::{CStr, c_int};
use std::ptr::null_mut;

use pyo3::PyClass;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple, PyType};

/// What a function of Python's C interface returned.
///
/// # Safety
/// O2.
#[inline]
pub unsafe fn owned<'py, T>(py: Python<'py>, made: *mut ffi::PyObject) -> PyResult<Bound<'py, T>> {
    // SAFETY: O2, of the caller.
    let object = unsafe { Bound::from_owned_ptr_or_err(py, made) }?;
    // SAFETY: O2, of the caller.
    Ok(unsafe { object.cast_into_unchecked() })
}

/// A new object of a frozen class, made in its place: `Py::new` moves it there twice.
///
/// # Safety
/// O3.
#[inline]
pub unsafe fn new_in_place<T: PyClass<Frozen = True>>(py: Python<'_>, value: T) -> PyResult<Py<T>> {
    // SAFETY: O1.
    let made = unsafe { ffi::PyType_GenericAlloc(T::type_object_raw(py), 0) };
    // SAFETY: O2.
    let object: Bound<'_, T> = unsafe { owned(py, made) }?;
    // SAFETY: O3, of the caller: the value stands behind the header. Nobody has seen the object yet.
    unsafe { made.wrapping_add(1).cast::<T>().write(value) };
    Ok(object.unbind())
}

/// Whether objects of that class are the header and the value and nothing else.
pub fn holds_only<T: PyClass>(py: Python<'_>) -> bool {
    // SAFETY: O1: the type object of a class is alive.
    let size = unsafe { (*T::type_object_raw(py)).tp_basicsize };
    size as usize == size_of::<ffi::PyObject>() + size_of::<T>() && align_of::<T>() <= align_of::<ffi::PyObject>()
}

/// Whether it is one of that class, whatever it says of itself.
#[inline]
pub fn is_of(object: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> bool {
    // SAFETY: O1.
    unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), class.as_type_ptr()) != 0 }
}

/// By value, without calling any method of a subclass; None if it does not fit.
pub fn int64(int: &Bound<'_, PyInt>) -> Option<i64> {
    let mut overflow: c_int = 0;
    // SAFETY: O1.
    let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(int.as_ptr(), &mut overflow) };
    (overflow == 0).then_some(number)
}

pub fn int(py: Python<'_>, number: i64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: O1.
    let made = unsafe { ffi::PyLong_FromLongLong(number) };
    // SAFETY: O2.
    unsafe { owned(py, made) }
}

/// Of a count or a length.
pub fn number(py: Python<'_>, number: usize) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: O1.
    let made = unsafe { ffi::PyLong_FromSize_t(number) };
    // SAFETY: O2.
    unsafe { owned(py, made) }
}

pub fn text<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: O1: UTF-8 of that length.
    let made = unsafe { ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as ffi::Py_ssize_t) };
    // SAFETY: O2.
    unsafe { owned(py, made) }
}

/// Set by Python itself, which keeps a MemoryError for when there is no memory for one.
pub fn memory_error(py: Python<'_>, text: &CStr) -> PyErr {
    // SAFETY: O1: set when Python started, and never changed.
    let class = unsafe { ffi::PyExc_MemoryError };
    // SAFETY: O1: a class of exceptions and a C string.
    unsafe { ffi::PyErr_SetString(class, text.as_ptr()) };
    PyErr::fetch(py)
}

/// Grown element by element, since nobody knows how many can be made.
pub fn list<'py>(
    py: Python<'py>,
    elements: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Bound<'py, PyList>> {
    // SAFETY: O1.
    let made = unsafe { ffi::PyList_New(0) };
    // SAFETY: O2.
    let list: Bound<'py, PyList> = unsafe { owned(py, made) }?;
    for element in elements {
        list.append(element?)?;
    }
    Ok(list)
}

/// The items as they are stored, whatever a subclass says.
pub fn tuple_of<'py>(list: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyTuple>> {
    // SAFETY: O1.
    let made = unsafe { ffi::PyList_AsTuple(list.as_ptr()) };
    // SAFETY: O2.
    unsafe { owned(list.py(), made) }
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
    // SAFETY: O1.
    let made = unsafe { ffi::PyDict_New() };
    // SAFETY: O2.
    let dict: Bound<'py, PyDict> = unsafe { owned(py, made) }?;
    for (key, value) in entries {
        // SAFETY: O1: the key is UTF-8.
        if unsafe { ffi::PyDict_SetItemString(dict.as_ptr(), key.as_ptr(), value.as_ptr()) } != 0 {
            return Err(PyErr::fetch(py));
        }
    }
    Ok(dict)
}

/// An instance of a class without slots, with these fields, made without a call of anything in Python, such as a
/// `__setattr__`. (After PyObject_GenericSetDict, Python 3.13 still looks at the values inside the object first.)
pub fn instance<'py, const N: usize>(
    class: &Bound<'py, PyAny>,
    fields: [(&CStr, Bound<'py, PyAny>); N],
) -> PyResult<Bound<'py, PyAny>> {
    let (py, class) = (class.py(), class.cast::<PyType>()?);
    // SAFETY: O1.
    let made = unsafe { ffi::PyType_GenericNew(class.as_type_ptr(), null_mut(), null_mut()) };
    // SAFETY: O2.
    let made: Bound<'py, PyAny> = unsafe { owned(py, made) }?;
    for (name, value) in fields {
        // SAFETY: O1: the name is UTF-8.
        let interned = unsafe { ffi::PyUnicode_InternFromString(name.as_ptr()) };
        // SAFETY: O2.
        let name: Bound<'py, PyString> = unsafe { owned(py, interned) }?;
        // SAFETY: O1.
        if unsafe { ffi::PyObject_GenericSetAttr(made.as_ptr(), name.as_ptr(), value.as_ptr()) } != 0 {
            return Err(PyErr::fetch(py));
        }
    }
    Ok(made)
}

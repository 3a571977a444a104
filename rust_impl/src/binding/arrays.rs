//! Arrays of int64, made in NumPy's own way: the `numpy` crate panics where there is no memory for one.
//!
//! Obligations of `unsafe`:
//!
//! O1. A function of NumPy's or Python's C interface is called attached (`py` shows it), with live objects of the types
//!     that it asks for. References that it takes over are given away.
//! O2. The object is new, and nobody else knows of it: so this is the only way to its memory, aligned for so many int64.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use numpy::npyffi::{NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NpyTypes, PY_ARRAY_API, get_type_object, npy_intp};
use numpy::{Element, PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::errors::no_memory;
use super::objects::owned;
use crate::core::{NoMemory, copy};

pub type Slots = PyArray1<i64>;

/// An array of so many numbers, all of which `fill` writes before anybody else sees it.
pub fn filled<'py>(
    py: Python<'py>,
    count: usize,
    fill: impl FnOnce(&mut [MaybeUninit<i64>]) -> PyResult<()>,
) -> PyResult<Bound<'py, Slots>> {
    let array = new_array(py, count, null_mut(), 0)?;
    // SAFETY: O2.
    fill(unsafe { std::slice::from_raw_parts_mut(array.data().cast(), count) })?;
    Ok(array)
}

/// The same, but that nobody can ever write to it: it shows the memory of a `bytes` object, so that NumPy does not let
/// its flag be set again, as it lets whoever has an array that owns its memory.
pub fn read_only<'py>(
    py: Python<'py>,
    count: usize,
    fill: impl FnOnce(&mut [MaybeUninit<i64>]) -> PyResult<()>,
) -> PyResult<Py<Slots>> {
    let size = count.checked_mul(size_of::<i64>()).and_then(|bytes| isize::try_from(bytes).ok());
    let size = size.ok_or_else(|| no_memory(NoMemory))?;
    // SAFETY: O1.
    let made = unsafe { ffi::PyBytes_FromStringAndSize(null(), size) };
    // SAFETY: O1: new bytes, or null with an error set.
    let bytes: Bound<'py, PyBytes> = unsafe { owned(py, made) }?;
    // SAFETY: O1.
    let memory = unsafe { ffi::PyBytes_AsString(bytes.as_ptr()) };
    // SAFETY: O2; the memory of bytes is aligned as every object's is, behind a header of whole words.
    fill(unsafe { std::slice::from_raw_parts_mut(memory.cast(), count) })?;
    let array = new_array(py, count, memory.cast(), NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED)?;
    // SAFETY: O1: the array takes over the reference, also when that fails.
    let set = unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_array_ptr(), bytes.into_ptr()) };
    if set == 0 { Ok(array.unbind()) } else { Err(PyErr::fetch(py)) }
}

/// An array of that memory, which must outlive it; null: of memory of its own.
fn new_array<'py>(py: Python<'py>, count: usize, memory: *mut c_void, flags: c_int) -> PyResult<Bound<'py, Slots>> {
    let mut shape = [npy_intp::try_from(count).map_err(|_| no_memory(NoMemory))?];
    let kind = i64::get_dtype(py).into_dtype_ptr();
    // SAFETY: O1.
    let class = unsafe { get_type_object(py, NpyTypes::PyArray_Type) };
    let (shape, strides, base) = (shape.as_mut_ptr(), null_mut(), null_mut());
    // SAFETY: O1: one dimension, no strides, and a reference to the type that is given away.
    let made = unsafe { PY_ARRAY_API.PyArray_NewFromDescr(py, class, kind, 1, shape, strides, memory, flags, base) };
    // SAFETY: O1: a new array of int64, or null with an error set.
    unsafe { owned(py, made) }
}

pub fn copied<'py>(py: Python<'py>, numbers: &[i64]) -> PyResult<Bound<'py, Slots>> {
    filled(py, numbers.len(), |elements| {
        copy(numbers, elements);
        Ok(())
    })
}

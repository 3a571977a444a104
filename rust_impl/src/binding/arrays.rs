//! Arrays of int64, made in NumPy's own way: the `numpy` crate panics where there is no memory for one.

use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use numpy::npyffi::{
    NPY_ARRAY_ALIGNED, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, get_type_object, npy_intp,
};
use numpy::{Element, PyArray1, PyArrayDescrMethods, PyUntypedArrayMethods};
use pyo3::ffi;
use pyo3::prelude::*;

use super::errors::no_memory;
use crate::core::NoMemory;

pub type Slots = PyArray1<i64>;

/// An array of so many numbers, all of which `fill` writes before anybody else sees it.
pub fn filled<'py>(
    py: Python<'py>,
    count: usize,
    fill: impl FnOnce(&mut [MaybeUninit<i64>]) -> PyResult<()>,
) -> PyResult<Bound<'py, Slots>> {
    let array = new_array(py, count, None)?;
    // SAFETY: the array is new, so this is the only way to its elements.
    fill(unsafe { std::slice::from_raw_parts_mut((*array.as_array_ptr()).data.cast(), count) })?;
    Ok(array)
}

/// The same, but that nobody can ever write to it: it shows the memory of a `bytes` object, so that NumPy does not let
/// its flag be set again, as it lets whoever has an array that owns its memory.
pub fn read_only<'py>(
    py: Python<'py>,
    count: usize,
    fill: impl FnOnce(&mut [MaybeUninit<i64>]) -> PyResult<()>,
) -> PyResult<Py<Slots>> {
    let bytes = count.checked_mul(size_of::<i64>()).and_then(|bytes| isize::try_from(bytes).ok());
    // SAFETY: new bytes, or null with an error set; nobody has seen them yet, so they may be written. Their memory is
    // aligned as every object's is, behind a header of whole words.
    unsafe {
        let size = bytes.ok_or_else(|| no_memory(NoMemory))?;
        let bytes = Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(null(), size))?;
        let memory = ffi::PyBytes_AS_STRING(bytes.as_ptr()).cast_mut();
        fill(std::slice::from_raw_parts_mut(memory.cast(), count))?;
        Ok(new_array(py, count, Some((bytes, memory.cast())))?.unbind())
    }
}

/// An array with memory of its own, or one that shows the memory of an object and cannot be written.
fn new_array<'py>(
    py: Python<'py>,
    count: usize,
    shown: Option<(Bound<'py, PyAny>, *mut std::ffi::c_void)>,
) -> PyResult<Bound<'py, Slots>> {
    let mut shape = [npy_intp::try_from(count).map_err(|_| no_memory(NoMemory))?];
    let kind = i64::get_dtype(py).into_dtype_ptr();
    let (memory, flags) = match &shown {
        Some((_, memory)) => (*memory, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED),
        None => (null_mut(), 0),
    };
    // SAFETY: one dimension, no strides, and a reference to the type that is given away. The result is a new int64
    // array, or null with an error set. It takes over the reference to what owns its memory, also when it fails.
    unsafe {
        let class = get_type_object(py, NpyTypes::PyArray_Type);
        let made = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            class,
            kind,
            1,
            shape.as_mut_ptr(),
            null_mut(),
            memory,
            flags,
            null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked::<Slots>();
        if let Some((owner, _)) = shown {
            if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_array_ptr(), owner.into_ptr()) != 0 {
                return Err(PyErr::fetch(py));
            }
        } else {
            debug_assert!((*array.as_array_ptr()).flags & NPY_ARRAY_WRITEABLE != 0, "made to be filled");
        }
        Ok(array)
    }
}

pub fn copied<'py>(py: Python<'py>, numbers: &[i64]) -> PyResult<Bound<'py, Slots>> {
    filled(py, numbers.len(), |elements| {
        copy(numbers, elements);
        Ok(())
    })
}

/// Both are equally long.
pub fn copy(from: &[i64], to: &mut [MaybeUninit<i64>]) {
    assert_eq!(from.len(), to.len());
    for (to, &from) in to.iter_mut().zip(from) {
        to.write(from);
    }
}

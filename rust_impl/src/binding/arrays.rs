//! Arrays of int64, made in NumPy's own way: the `numpy` crate panics where there is no memory for one.

use numpy::npyffi::{NPY_ARRAY_WRITEABLE, PY_ARRAY_API, npy_intp};
use numpy::{Element, PyArray1, PyArrayDescrMethods, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::errors::no_memory;
use crate::core::NoMemory;

pub type Slots = PyArray1<i64>;

/// An array of so many zeros, filled by `fill` before anybody else sees it.
pub fn filled<'py>(
    py: Python<'py>,
    count: usize,
    fill: impl FnOnce(&mut [i64]) -> PyResult<()>,
) -> PyResult<Bound<'py, Slots>> {
    let mut shape = [npy_intp::try_from(count).map_err(|_| no_memory(NoMemory))?];
    let kind = i64::get_dtype(py).into_dtype_ptr();
    // SAFETY: one dimension, and a reference to the type that is given away. The result is a new int64 array, or null
    // with an error set.
    let array = unsafe {
        let made = PY_ARRAY_API.PyArray_Zeros(py, 1, shape.as_mut_ptr(), kind, 0);
        Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked::<Slots>()
    };
    // SAFETY: the array is new, so this is the only way to its elements, and they are initialised.
    fill(unsafe { array.as_slice_mut()? })?;
    Ok(array)
}

pub fn copied<'py>(py: Python<'py>, numbers: &[i64]) -> PyResult<Bound<'py, Slots>> {
    filled(py, numbers.len(), |elements| {
        elements.copy_from_slice(numbers);
        Ok(())
    })
}

/// A view of the array, since NumPy lets whoever has an array that owns its memory make it writable again.
pub fn read_only(array: Bound<'_, Slots>) -> PyResult<Py<Slots>> {
    let py = array.py();
    // SAFETY: a live array that no other code has got yet. The view is a new array of the same kind, and not writable
    // as the array is not; or null with an error set.
    unsafe {
        let owner = array.as_array_ptr();
        (*owner).flags &= !NPY_ARRAY_WRITEABLE;
        let view = PY_ARRAY_API.PyArray_View(py, owner, std::ptr::null_mut(), std::ptr::null_mut());
        Ok(Bound::from_owned_ptr_or_err(py, view)?.cast_into_unchecked().unbind())
    }
}

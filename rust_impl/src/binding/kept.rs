//! Objects that are made on first use and then kept.
//!
//! Obligations of `unsafe`:
//!
//! O1. The pointer is null, or a reference of its own to an object of that type, which only `drop` gives back.
//! O2. A reference is given back by its owner, attached: as `py` shows, or as whoever takes an object apart is.

use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

/// Written at most once. (A `OnceLock` takes three times as long to set.)
pub struct Kept<T> {
    object: AtomicPtr<ffi::PyObject>,
    of: PhantomData<Py<T>>,
}

impl<T> Kept<T> {
    pub const fn nothing() -> Self {
        Self { object: AtomicPtr::new(null_mut()), of: PhantomData }
    }

    pub fn get(&self, py: Python<'_>) -> Option<Py<T>> {
        let object = self.object.load(Ordering::Acquire);
        // SAFETY: O1.
        let object = unsafe { Bound::from_borrowed_ptr_or_opt(py, object) }?;
        // SAFETY: O1.
        Some(unsafe { object.cast_into_unchecked() }.unbind())
    }

    /// What was made before, or is made now. (Of two threads that make it at the same time one throws its own away;
    /// nobody waits, since making it may let go of the GIL.)
    pub fn get_or_make(&self, py: Python<'_>, make: impl FnOnce() -> PyResult<Py<T>>) -> PyResult<Py<T>> {
        if let Some(made) = self.get(py) {
            return Ok(made);
        }
        let made = make()?;
        let kept = made.clone_ref(py).into_ptr();
        match self.object.compare_exchange(null_mut(), kept, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(made),
            Err(_) => {
                // SAFETY: O2: the reference was not taken.
                unsafe { ffi::Py_DECREF(kept) };
                Ok(self.get(py).unwrap_or(made))
            }
        }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: O1, O2.
        unsafe { ffi::Py_XDECREF(*self.object.get_mut()) };
    }
}

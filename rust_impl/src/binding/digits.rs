//! Ints of a list or tuple read by their digits: several times faster than by a call for each.
//!
//! Obligations of `unsafe`:
//!
//! O1. The pointer is to a live object, and the thread is attached (an object that is given shows it).
//! O2. It is an int, and this Python lays ints out as `Int` says: at least one digit is in its memory, and a second one
//!     if its size says so.
//! O3. The position lies below the size of the list or tuple, and no Python code runs, nor is the GIL given up, from
//!     where the size is read to where the last item is: so the list stays as it is.

use std::mem::offset_of;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};

use super::errors::no_memory;
use super::keys::Number;
use super::objects::int64;

/// How CPython lays out an int: its header, a word that tells sign and number of digits, and the digits, the least
/// first.
#[repr(C)]
struct Int {
    header: ffi::PyObject,
    size: isize,
    digits: [u32; 2],
}

const DIGIT_BITS: u32 = 30;

/// Elsewhere the function of Python reads every int. (Digits of 15 bits, which nobody uses on 64-bit machines, are
/// refused when the module is imported.)
const KNOWN_LAYOUT: bool = cfg!(all(not(PyPy), not(GraalPy), target_pointer_width = "64"));

pub fn refuse_other_digits(py: Python<'_>) -> PyResult<()> {
    let bits: u32 = py.import("sys")?.getattr("int_info")?.getattr("bits_per_digit")?.extract()?;
    if KNOWN_LAYOUT && bits != DIGIT_BITS {
        let message = format!("the Rust tree needs a Python whose ints have digits of {DIGIT_BITS} bits, not {bits}");
        return Err(PyImportError::new_err(message));
    }
    Ok(())
}

/// The value of an int (not of a subclass) that fits into 64 bits.
#[inline(always)]
fn plain_int(item: Borrowed<'_, '_, PyAny>) -> Option<i64> {
    if !item.is_exact_instance_of::<PyInt>() {
        return None;
    }
    if KNOWN_LAYOUT {
        let int = item.as_ptr().cast::<Int>();
        // SAFETY: O1, O2.
        let size = unsafe { (*int).size };
        // Before Python 3.12 the number of digits with the sign of the int; since then the number above three bits, of
        // which the lower two are 0 for positive ints and 1 for zero.
        let digits = match (cfg!(Py_3_12), size & 3) {
            (false, _) => size,
            (true, 0) => size >> 3,
            (true, 1) => 0,
            (true, _) => -1,
        };
        let first = int.wrapping_byte_add(offset_of!(Int, digits)).cast::<u32>();
        // SAFETY: O1, O2, of a place below the number of digits.
        let digit = |place: usize| i64::from(unsafe { first.wrapping_add(place).read() });
        match digits {
            0 => return Some(0),
            1 => return Some(digit(0)),
            2 => return Some(digit(0) | digit(1) << DIGIT_BITS),
            _ => {}
        }
    }
    let int = item.cast::<PyInt>().ok()?;
    int64(&int)
}

/// A list or tuple, by what it stores, whatever a subclass says.
#[derive(Clone, Copy)]
pub enum Items<'a, 'py> {
    List(&'a Bound<'py, PyList>),
    Tuple(&'a Bound<'py, PyTuple>),
}

impl<'a, 'py> Items<'a, 'py> {
    fn len(self) -> usize {
        match self {
            Items::List(list) => list.len(),
            Items::Tuple(tuple) => tuple.len(),
        }
    }

    /// # Safety
    /// O3.
    #[inline(always)]
    unsafe fn get(self, place: usize) -> Borrowed<'a, 'py, PyAny> {
        let place = place as ffi::Py_ssize_t;
        let (py, item) = match self {
            // SAFETY: O1; O3, of the caller.
            Items::List(list) => (list.py(), unsafe { ffi::PyList_GET_ITEM(list.as_ptr(), place) }),
            // SAFETY: O1; O3, of the caller.
            Items::Tuple(tuple) => (tuple.py(), unsafe { ffi::PyTuple_GET_ITEM(tuple.as_ptr(), place) }),
        };
        // SAFETY: O1; O3, of the caller: the list or tuple holds it.
        unsafe { Borrowed::from_ptr(py, item) }
    }
}

/// Reads items that are plain ints in range. False, with nothing read, if there are others.
pub fn read_plain<T: Number>(items: Items, numbers: &mut Vec<T>) -> PyResult<bool> {
    let count = items.len();
    numbers.try_reserve(count).map_err(|error| no_memory(error.into()))?;
    for place in 0..count {
        // SAFETY: O3.
        match plain_int(unsafe { items.get(place) }) {
            Some(number) if number as u64 <= T::limit(true) => numbers.push(T::from_bits(number as u64)),
            _ => {
                numbers.clear();
                return Ok(false);
            }
        }
    }
    Ok(true)
}

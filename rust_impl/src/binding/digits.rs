//! Ints of a list read by their digits: several times faster than by a call for each.

use std::ffi::c_int;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

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
///
/// # Safety
/// A live object.
#[inline(always)]
pub unsafe fn plain_int(item: *mut ffi::PyObject) -> Option<i64> {
    // SAFETY: the type is read first; an int has at least one digit in memory, and a second one if its size says so.
    unsafe {
        if ffi::Py_TYPE(item) != &raw mut ffi::PyLong_Type {
            return None;
        }
        if KNOWN_LAYOUT {
            let int = item.cast::<Int>();
            let size = (*int).size;
            // Before Python 3.12 the number of digits with the sign of the int; since then the number above three bits,
            // of which the lower two are 0 for positive ints and 1 for zero.
            let digits = match (cfg!(Py_3_12), size & 3) {
                (false, _) => size,
                (true, 0) => size >> 3,
                (true, 1) => 0,
                (true, _) => -1,
            };
            let digit = |i: usize| i64::from((&raw const (*int).digits).cast::<u32>().add(i).read());
            match digits {
                0 => return Some(0),
                1 => return Some(digit(0)),
                2 => return Some(digit(0) | digit(1) << DIGIT_BITS),
                _ => {}
            }
        }
        let mut overflow: c_int = 0;
        let number = ffi::PyLong_AsLongLongAndOverflow(item, &mut overflow);
        (overflow == 0).then_some(number)
    }
}

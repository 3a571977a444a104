//! One-dimensional integer buffers, read through the buffer protocol.
//!
//! Another thread may write to a buffer while it is read. So what is checked is a copy of each part of it, and what is
//! read in place is compared and copied, never trusted: a race gives some result, not a broken tree.
//!
//! Obligations of `unsafe`:
//!
//! O1. A function of Python's C interface is called attached: a `Buffer` is made and dropped by the call that it is an
//!     argument of.
//! O2. The view stays in its place from `take` on, and is released once, if it was filled.
//! O3. What the exporter filled in is so as the buffer protocol promises: `count` elements of `size` bytes, `stride`
//!     apart or behind pointers that are, and a format, shape and strides that live as long. Whoever has a `Shape` or
//!     `Elements` keeps the buffer, or the object whose memory it is.
//! O4. Elements are integers, of which any bits are one. Another thread may change them: nothing follows from what one
//!     was a moment ago.
//! O5. A pointer by itself does nothing, in whatever thread: whoever follows it has O3.

use std::ffi::{CStr, c_char};
use std::marker::PhantomPinned;
use std::pin::Pin;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::errors::{no_memory, type_error};
use super::keys::{Number, Role, out_of_range};

/// A buffer that its exporter keeps alive and in place until this is dropped.
pub struct Buffer {
    view: ffi::Py_buffer,
    held: bool,
    /// An exporter may point into the view itself.
    _pinned: PhantomPinned,
}

/// Where the elements of a buffer stand and how they are stored. O3 holds of it.
#[derive(Clone, Copy)]
pub struct Shape {
    start: *const u8,
    count: usize,
    stride: isize,
    /// Not negative: each element is a pointer, followed to this offset.
    suboffset: isize,
    size: usize,
    signed: bool,
    swapped: bool,
}

/// Elements one after the other, aligned, in the byte order of this machine. O3 holds of them.
#[derive(Clone, Copy)]
pub struct Elements {
    pub start: *const u8,
    pub count: usize,
    pub size: usize,
    pub signed: bool,
}

// SAFETY: O5.
unsafe impl Send for Elements {}
// SAFETY: O5.
unsafe impl Sync for Elements {}

impl Elements {
    /// As `S`, which is as large as they are.
    ///
    /// # Safety
    /// O3, for as long as the slice is used, and `S` is of their size.
    #[inline(always)]
    pub unsafe fn slice<'a, S: Stored>(self) -> &'a [S] {
        debug_assert!(size_of::<S>() == self.size, "elements are read at their size");
        // SAFETY: O3, of the caller; O4.
        unsafe { std::slice::from_raw_parts(self.start.cast::<S>(), self.count) }
    }
}

impl Buffer {
    pub const fn empty() -> Self {
        Self { view: ffi::Py_buffer::new(), held: false, _pinned: PhantomPinned }
    }

    /// Takes the buffer of `source`. Once only.
    #[inline(always)]
    pub fn take(self: Pin<&mut Self>, source: &Bound<'_, PyAny>, role: &Role) -> PyResult<Shape> {
        // SAFETY: O2: nothing is moved out.
        let this = unsafe { self.get_unchecked_mut() };
        assert!(!this.held, "a buffer is taken once");
        // SAFETY: O1, O2.
        if unsafe { ffi::PyObject_GetBuffer(source.as_ptr(), &mut this.view, ffi::PyBUF_FULL_RO) } != 0 {
            return Err(refused(source, role)?);
        }
        // From here on `Drop` releases it.
        this.held = true;
        this.shape(role)
    }

    #[inline(always)]
    fn shape(&self, role: &Role) -> PyResult<Shape> {
        let view = &self.view;
        if view.ndim != 1 {
            return Err(type_error(format_args!("{} must have one dimension, not {}", role.what, view.ndim)));
        }
        // SAFETY: O3: a format that is not null is a C string.
        let format = if view.format.is_null() { c"B" } else { unsafe { CStr::from_ptr(view.format as *const c_char) } };
        let (order, letter) = match format.to_bytes() {
            [letter] => (b'@', *letter),
            [order @ (b'@' | b'=' | b'<' | b'>' | b'!'), letter] => (*order, *letter),
            _ => (b'@', 0),
        };
        let size = view.itemsize as usize;
        if !b"bBhHiIlLqQnN".contains(&letter) || !matches!(size, 1 | 2 | 4 | 8) {
            let shown = format.to_string_lossy();
            return Err(type_error(format_args!("{} must hold integers, not a buffer of format '{shown}'", role.what)));
        }
        let big = matches!(order, b'>' | b'!');
        let little = order == b'<';
        let first = |of: *const isize| {
            // SAFETY: O3: where they are given, shape, strides and suboffsets have an entry for each dimension.
            (!of.is_null()).then(|| unsafe { of.read() })
        };
        Ok(Shape {
            start: view.buf as *const u8,
            count: first(view.shape).unwrap_or_else(|| view.len / view.itemsize) as usize,
            stride: first(view.strides).unwrap_or(view.itemsize),
            suboffset: first(view.suboffsets).unwrap_or(-1),
            size,
            signed: letter.is_ascii_lowercase(),
            swapped: if cfg!(target_endian = "little") { big } else { little },
        })
    }
}

/// After the exporter has refused.
#[cold]
fn refused(source: &Bound<'_, PyAny>, role: &Role) -> PyResult<PyErr> {
    let py = source.py();
    let error = PyErr::fetch(py);
    let is_form = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyBufferError>(py);
    if is_form { role.wrong_form(source) } else { Ok(error) }
}

impl Shape {
    /// The elements where they are, if they stand there in one aligned piece.
    #[inline(always)]
    pub fn in_place(&self) -> Option<Elements> {
        let whole = self.suboffset < 0 && (self.stride == self.size as isize || self.count <= 1);
        let aligned = self.start.align_offset(self.size) == 0;
        let Self { start, count, size, signed, .. } = *self;
        (whole && aligned && !self.swapped && count > 0).then_some(Elements { start, count, size, signed })
    }

    /// Appends all elements, converted and checked.
    pub fn convert<T: Number>(&self, role: &Role, numbers: &mut Vec<T>) -> PyResult<()> {
        numbers.try_reserve(self.count).map_err(|error| no_memory(error.into()))?;
        match (self.size, self.signed) {
            (1, true) => self.convert_from::<i8, T>(role, numbers),
            (1, false) => self.convert_from::<u8, T>(role, numbers),
            (2, true) => self.convert_from::<i16, T>(role, numbers),
            (2, false) => self.convert_from::<u16, T>(role, numbers),
            (4, true) => self.convert_from::<i32, T>(role, numbers),
            (4, false) => self.convert_from::<u32, T>(role, numbers),
            (8, true) => self.convert_from::<i64, T>(role, numbers),
            _ => self.convert_from::<u64, T>(role, numbers),
        }
    }

    fn convert_from<S: Stored, T: Number>(&self, role: &Role, numbers: &mut Vec<T>) -> PyResult<()> {
        const PART: usize = 128;
        let limit = T::limit(S::SIGNED);
        let mut part = [S::default(); PART];
        for first in (0..self.count).step_by(PART) {
            let count = PART.min(self.count - first);
            let part = &mut part[..count];
            self.copy_part(first, part);
            // All limits are of the form 2ⁿ − 1, so one look at the union tells whether any element is too large. Two
            // simple loops, because one that does both is not vectorised.
            let union = part.iter().fold(0, |union, stored| union | stored.bits());
            numbers.extend(part.iter().map(|stored| T::from_bits(stored.bits())));
            if union > limit {
                let wrong = part.iter().position(|&stored| stored.bits() > limit);
                let wrong = wrong.unwrap_or_else(|| unreachable!("one of the part is out of range"));
                return Err(out_of_range::<T>(role, first + wrong, part[wrong].shown()));
            }
        }
        Ok(())
    }

    fn copy_part<S: Stored>(&self, first: usize, part: &mut [S]) {
        let (shape, base) = (self, self.start);
        if shape.suboffset < 0 && shape.stride == size_of::<S>() as isize {
            let bytes = base.wrapping_add(first * size_of::<S>()).cast::<S>();
            // SAFETY: O3: first + part.len() <= count; O4. The copy may be of unaligned elements, so it is of bytes.
            unsafe { bytes.cast::<u8>().copy_to_nonoverlapping(part.as_mut_ptr().cast(), size_of_val(part)) };
        } else {
            for (i, element) in part.iter_mut().enumerate() {
                let mut at = base.wrapping_offset((first + i) as isize * shape.stride);
                if shape.suboffset >= 0 {
                    // SAFETY: O3: a pointer stands there.
                    let pointer = unsafe { at.cast::<*const u8>().read_unaligned() };
                    at = pointer.wrapping_offset(shape.suboffset);
                }
                // SAFETY: O3, O4. Unaligned is fine.
                *element = unsafe { at.cast::<S>().read_unaligned() };
            }
        }
        if shape.swapped {
            part.iter_mut().for_each(|element| *element = element.swapped());
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.held {
            // SAFETY: O1, O2.
            unsafe { ffi::PyBuffer_Release(&mut self.view) }
        }
    }
}

/// An element as it stands in a buffer: an integer.
pub trait Stored: Copy + Default {
    const SIGNED: bool;
    /// Sign-extended to 64 bits.
    fn bits(self) -> u64;
    fn swapped(self) -> Self;
    fn shown(self) -> i128;
}

macro_rules! stored {
    ($($kind:ty: $signed:literal),+) => {$(
        impl Stored for $kind {
            const SIGNED: bool = $signed;

            fn bits(self) -> u64 {
                self as i64 as u64
            }

            fn swapped(self) -> Self {
                self.swap_bytes()
            }

            fn shown(self) -> i128 {
                self.into()
            }
        }
    )+};
}

stored!(i8: true, i16: true, i32: true, i64: true, u8: false, u16: false, u32: false, u64: false);

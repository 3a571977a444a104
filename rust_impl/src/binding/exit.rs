//! Threads that the end of the interpreter finds inside.
//!
//! Who asks for the GIL when the interpreter has begun to end does not get it back. Python 3.14 lets such a thread wait for
//! ever; before that it calls `pthread_exit`, and glibc unwinds the thread's frames. It may have been in Python code that
//! was called from here (an `__index__`, the log), and Rust aborts when its frames are unwound so. So the first of them
//! stops it, and the thread waits for ever here too: it holds no lock, since nothing here runs Python code while it does.
//!
//! No call pays for that. The unwinder asks the personality routine of std about each frame of Rust, and that routine
//! begins with asking for the frame's table. `build.rs` has the linker send that question here: it wraps the symbol.
//!
//! Obligations of `unsafe`:
//!
//! O1. The linker binds the two names as GNU ld documents it for `--wrap`: the one is called with what the personality
//!     routine passes to the unwinder, and the other is the unwinder's.
//! O2. Any thread may ask at any time whether the interpreter ends: that reads an atomic.

use std::ffi::{c_int, c_void};
use std::thread;
use std::time::Duration;

#[cfg(Py_3_13)]
use pyo3::ffi::Py_IsFinalizing;

unsafe extern "C" {
    fn __real__Unwind_GetLanguageSpecificData(frame: *mut c_void) -> *mut c_void;

    #[cfg(not(Py_3_13))]
    #[link_name = "_Py_IsFinalizing"]
    fn Py_IsFinalizing() -> c_int;
}

/// A panic unwinds as always. What else unwinds frames of Rust is the end of their thread.
// SAFETY: O1.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap__Unwind_GetLanguageSpecificData(frame: *mut c_void) -> *mut c_void {
    // SAFETY: O2.
    if !thread::panicking() && unsafe { Py_IsFinalizing() } != 0 {
        loop {
            thread::sleep(Duration::MAX);
        }
    }
    // SAFETY: O1.
    unsafe { __real__Unwind_GetLanguageSpecificData(frame) }
}

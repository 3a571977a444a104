//! The interpreter's lock, as far as the locks of a tree have to do with it. The models have one of their own.

use pyo3::prelude::*;

/// That it is held. On free-threaded Python that keeps nobody out.
pub trait Gil: Copy {
    const KEEPS_OUT: bool;

    /// Runs `work` without it. In the thread that calls it.
    fn detach<T: Send>(self, work: impl FnOnce() -> T + Send) -> T;
}

impl Gil for Python<'_> {
    const KEEPS_OUT: bool = cfg!(not(Py_GIL_DISABLED));

    fn detach<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        Python::detach(self, work)
    }
}

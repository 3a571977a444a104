//! Locks, atomics and threads: those of std; in the models those of loom, which tries every order of what they do.

#[cfg(feature = "models")]
pub use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicUsize},
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard},
    thread,
};
#[cfg(not(feature = "models"))]
pub use std::{
    sync::atomic::{AtomicBool, AtomicUsize},
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard},
    thread,
};

/// That of std with the methods of loom's, which sees there who is inside at the same time.
#[cfg(not(feature = "models"))]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(feature = "models"))]
impl<T> UnsafeCell<T> {
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub fn with<R>(&self, work: impl FnOnce(*const T) -> R) -> R {
        work(self.0.get())
    }

    #[inline(always)]
    pub fn with_mut<R>(&self, work: impl FnOnce(*mut T) -> R) -> R {
        work(self.0.get())
    }
}

/// A static; each run of a model begins with a new one.
#[cfg(not(feature = "models"))]
macro_rules! global {
    ($name:ident: $type:ty = $value:expr) => {
        static $name: $type = $value;
    };
}

#[cfg(feature = "models")]
macro_rules! global {
    ($name:ident: $type:ty = $value:expr) => {
        loom::lazy_static! {
            static ref $name: $type = $value;
        }
    };
}

pub(crate) use global;

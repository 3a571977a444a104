//! The tree behind its lock: shared for look-ups, exclusive for changes.
//!
//! An uncontended call keeps the GIL, since giving it up costs more than the call. Only when somebody else has the lock
//! it waits detached. A fault in the tree poisons it: that call and all later ones say so, and nobody hangs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{RwLock, TryLockError};

use pyo3::prelude::*;

use super::errors::{Broken, broken};
use super::fork::detached;
use crate::core::{Config, Failure, Handle, Request, Tree};

pub struct Exclusive {
    tree: RwLock<Tree>,
}

impl Exclusive {
    pub fn new(config: Config) -> Self {
        Self { tree: RwLock::new(Tree::new(config)) }
    }

    /// Look-ups run side by side.
    pub fn read<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Tree) -> T + Send) -> PyResult<T> {
        let outcome = match self.tree.try_read() {
            Ok(tree) => guarded(|| work(&tree)),
            Err(TryLockError::Poisoned(_)) => Err(poisoned()),
            Err(TryLockError::WouldBlock) => detached(py, || self.read_detached(work)),
        };
        outcome.map_err(|fault| broken(py, fault))
    }

    pub fn write<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Tree) -> T + Send) -> PyResult<T> {
        let outcome = match self.tree.try_write() {
            Ok(mut tree) => guarded(move || work(&mut tree)),
            Err(TryLockError::Poisoned(_)) => Err(poisoned()),
            Err(TryLockError::WouldBlock) => detached(py, || match self.tree.write() {
                Ok(mut tree) => guarded(move || work(&mut tree)),
                Err(_) => Err(poisoned()),
            }),
        };
        outcome.map_err(|fault| broken(py, fault))
    }

    /// For callers that are detached already.
    pub fn read_detached<T>(&self, work: impl FnOnce(&Tree) -> T) -> Result<T, Broken> {
        match self.tree.read() {
            Ok(tree) => guarded(|| work(&tree)),
            Err(_) => Err(poisoned()),
        }
    }

    pub fn write_detached<T>(&self, work: impl FnOnce(&mut Tree) -> T) -> Result<T, Broken> {
        match self.tree.write() {
            Ok(mut tree) => guarded(move || work(&mut tree)),
            Err(_) => Err(poisoned()),
        }
    }

    /// A match takes the lock for reading, unless it must empty the touch log first.
    pub fn match_prefix(&self, py: Python<'_>, request: Request) -> PyResult<Result<Handle, Failure>> {
        match self.read(py, |tree| tree.match_prefix(request))? {
            Err(Failure::LogFull) => self.write(py, |tree| {
                tree.drain_touches()?;
                tree.match_prefix(request)
            }),
            outcome => Ok(outcome),
        }
    }
}

/// The guard of an exclusive lock is moved into `work`, so that a panic drops it while unwinding: that poisons the lock.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Broken> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Broken(text.unwrap_or("a panic without a message").to_owned())
    })
}

fn poisoned() -> Broken {
    Broken("an earlier call failed half-way".to_owned())
}

//! What threads do to each other, tried in every order: `make models`.
//!
//! loom runs each model again and again, and lets its threads go on in another order each time, until there is none left
//! (up to a number of preemptions). It knows which thread has seen what another wrote, so that a lock or an ordering
//! that is missing shows as two who are at a tree at the same time, and a deadlock shows as such.
//!
//! The code is that of the module: `crate::sync` has loom's locks here, and the touch log is full sooner. What the models
//! stand in for is the interpreter.
//!
//! Without the feature `models` the callers are real threads, which meet as they happen to: that is what the sanitizers
//! look at.

mod callers;
#[cfg(feature = "models")]
mod forks;
#[cfg(feature = "models")]
#[allow(unsafe_code)]
mod helpers;
#[allow(unsafe_code)]
mod stories;

use std::cell::RefCell;
#[cfg(feature = "models")]
use std::sync::Arc;
#[cfg(feature = "models")]
use std::sync::atomic::{AtomicUsize, Ordering};

use super::gil::Gil;
use crate::sync::{Mutex, MutexGuard, thread};

/// loom counts in words, and has 4K of them if one does not say.
const STACK: usize = if cfg!(feature = "models") { 32 << 10 } else { 1 << 20 };

/// The environment may say another number.
fn at_most(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |given| given.parse().expect("a number"))
}

/// Tries `model` in every order with at most so many preemptions.
#[cfg(feature = "models")]
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let tried = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tried);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(at_most("PREEMPTIONS", 3));
    builder.max_branches = 10_000;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{} orders", tried.load(Ordering::Relaxed));
}

/// Runs it so many times.
#[cfg(not(feature = "models"))]
fn explore(model: impl Fn() + Sync + Send + 'static) {
    (0..at_most("ROUNDS", 200)).for_each(|_| model());
}

/// Does not print panics that say so, of which each order has one.
fn expect_panics(which: &'static str) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some(which) {
            hook(info);
        }
    }));
}

fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::Builder::new().stack_size(STACK).spawn(work).expect("there is room for a thread")
}

/// The GIL of a model, held.
struct Held<'a> {
    gil: &'a Mutex<()>,
    guard: RefCell<Option<MutexGuard<'a, ()>>>,
}

impl<'a> Held<'a> {
    fn take(gil: &'a Mutex<()>) -> Self {
        Self { gil, guard: RefCell::new(Some(gil.lock().unwrap())) }
    }
}

impl Gil for &Held<'_> {
    const KEEPS_OUT: bool = true;

    fn detach<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        self.guard.replace(None);
        let outcome = work();
        let guard = self.gil.lock().unwrap();
        self.guard.replace(Some(guard));
        outcome
    }
}

/// There is none: free-threaded Python.
#[derive(Clone, Copy)]
struct Free;

impl Gil for Free {
    const KEEPS_OUT: bool = false;

    fn detach<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        work()
    }
}

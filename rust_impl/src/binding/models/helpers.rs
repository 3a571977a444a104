//! The pool of helpers: work is handed out and done once, and nobody is at it any more when `share` returns.
//!
//! Obligation of `unsafe`:
//!
//! O1. Each place has a number that one thread is given, and it is read after `share`. loom checks it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::pool::{dismiss, share};
use super::{expect_panics, explore, spawn};
use crate::sync::{AtomicUsize, UnsafeCell, thread};

/// Places that threads fill, each one once: loom sees two at the same, and one that is read before it is seen written.
struct Places {
    next: AtomicUsize,
    filled: Vec<UnsafeCell<usize>>,
}

// SAFETY: O1.
unsafe impl Sync for Places {}

impl Places {
    fn new(count: usize) -> Self {
        Self { next: AtomicUsize::new(0), filled: (0..count).map(|_| UnsafeCell::new(0)).collect() }
    }

    fn fill(&self) {
        while let Some(place) = self.filled.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            // SAFETY: O1.
            place.with_mut(|place| unsafe { *place += 1 });
        }
    }

    fn are_filled(&self) {
        for place in &self.filled {
            // SAFETY: O1.
            assert_eq!(place.with(|place| unsafe { *place }), 1);
        }
    }
}

fn shared(helpers: usize, count: usize) {
    let places = Places::new(count);
    share(helpers, &|| places.fill());
    places.are_filled();
}

/// Whoever is asleep is woken again for the next work.
#[test]
fn one_after_the_other() {
    explore(|| {
        spawn(|| {
            shared(1, 2);
            shared(1, 2);
            dismiss();
        })
        .join()
        .unwrap();
    });
}

#[test]
fn two_helpers() {
    explore(|| {
        spawn(|| {
            shared(2, 3);
            dismiss();
        })
        .join()
        .unwrap();
    });
}

#[test]
fn two_who_share() {
    explore(|| {
        let both = [spawn(|| shared(1, 2)), spawn(|| shared(1, 2))];
        both.into_iter().for_each(|one| one.join().unwrap());
        dismiss();
    });
}

/// A helper's panic goes on in the caller, and the helper helps again.
#[test]
fn a_panic_of_a_helper() {
    expect_panics("of a helper");
    let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    explore(move || {
        let counted = Arc::clone(&counted);
        spawn(move || {
            let first = AtomicUsize::new(0);
            // Whoever comes second, if anybody does.
            let work = || {
                if first.fetch_add(1, Ordering::Relaxed) == 1 && thread::current().name() == Some("triradix") {
                    panic!("of a helper");
                }
            };
            if catch_unwind(AssertUnwindSafe(|| share(1, &work))).is_err() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            shared(1, 2);
            dismiss();
        })
        .join()
        .unwrap();
    });
    assert!(seen.load(Ordering::Relaxed) > 0);
}

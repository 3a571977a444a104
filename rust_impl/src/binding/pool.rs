//! Threads that help a batch, kept for the next one.
//!
//! A helper sleeps until somebody hands it work. Who hands it out works too, and in the end takes back what no helper
//! has begun yet, so that nobody waits for a thread that is slow to wake. Nothing here knows Python: a helper needs no
//! GIL, and one that sleeps when the process ends goes with it.
//!
//! A fork's child has none of its parent's threads. Helpers work only behind the gate (`fork`), so none is at work
//! then; the child forgets them and starts its own.
//!
//! Obligation of `unsafe`:
//!
//! O1. Work that is handed out may be called from any thread, and stays alive until `Shared::end`, before which nobody
//!     gives up a `Shared`: it takes back what no helper has begun, and waits for what one has.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock, PoisonError};

use crate::sync::{Condvar, Mutex, MutexGuard, global, thread};

/// A walk neither recurses nor holds much.
const STACK: usize = 256 << 10;

type Panic = Box<dyn Any + Send>;

/// Those that sleep.
struct Pool {
    process: u32,
    asleep: Vec<Arc<Helper>>,
}

global!(POOL: Mutex<Pool> = Mutex::new(Pool { process: 0, asleep: Vec::new() }));

struct Helper {
    desk: Mutex<Desk>,
    changed: Condvar,
}

enum Desk {
    Empty,
    Given(Work),
    Begun,
    Done(Option<Panic>),
    #[cfg(all(test, feature = "models"))]
    Dismissed,
}

#[derive(Clone, Copy)]
struct Work(*const (dyn Fn() + Sync));

// SAFETY: O1.
unsafe impl Send for Work {}

/// How many threads can run at the same time.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |cores| cores.get()))
}

/// Runs `work` here and at the same time in up to `helpers` other threads; returns when it has ended in all. A panic in
/// one of them goes on here. Where no thread can be had there is one less.
pub fn share(helpers: usize, work: &(dyn Fn() + Sync)) {
    let mut shared = Shared::begin(helpers, work);
    work();
    if let Some(panic) = shared.end() {
        resume_unwind(panic);
    }
}

/// Work that is handed out.
struct Shared {
    helpers: Vec<Arc<Helper>>,
}

impl Shared {
    fn begin(count: usize, work: &(dyn Fn() + Sync)) -> Self {
        let work: *const (dyn Fn() + Sync + '_) = work;
        // SAFETY: O1. The lifetime alone changes.
        let work =
            Work(unsafe { std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync)>(work) });
        let helpers = awaken(count);
        for helper in &helpers {
            *locked(&helper.desk) = Desk::Given(work);
            helper.changed.notify_one();
        }
        Self { helpers }
    }

    /// Takes back what has not begun, waits for the rest; a panic of one.
    fn end(&mut self) -> Option<Panic> {
        let mut panic = None;
        for helper in &self.helpers {
            let mut desk = locked(&helper.desk);
            while let Desk::Begun = *desk {
                desk = helper.changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
            }
            if let Desk::Done(Some(caught)) = std::mem::replace(&mut *desk, Desk::Empty) {
                panic = Some(caught);
            }
        }
        locked(&POOL).asleep.append(&mut self.helpers);
        panic
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end();
    }
}

/// So many that sleep, or fewer.
fn awaken(count: usize) -> Vec<Arc<Helper>> {
    let mut pool = locked(&POOL);
    let process = std::process::id();
    if pool.process != process {
        // Those of the parent: whatever they were, they are not here.
        pool.asleep.clear();
        pool.process = process;
    }
    let kept = pool.asleep.len().saturating_sub(count);
    let mut helpers = pool.asleep.split_off(kept);
    drop(pool);
    while helpers.len() < count {
        let helper = Arc::new(Helper { desk: Mutex::new(Desk::Empty), changed: Condvar::new() });
        let own = Arc::clone(&helper);
        let thread = thread::Builder::new().name("triradix".to_owned()).stack_size(STACK);
        if thread.spawn(move || serve(&own)).is_err() {
            break;
        }
        helpers.push(helper);
    }
    helpers
}

/// Ends those that sleep: a model is over when all its threads are.
#[cfg(all(test, feature = "models"))]
pub fn dismiss() {
    for helper in std::mem::take(&mut locked(&POOL).asleep) {
        *locked(&helper.desk) = Desk::Dismissed;
        helper.changed.notify_one();
    }
}

/// Whether a fork's child could take what it will take.
#[cfg(all(test, feature = "models"))]
pub fn is_free() -> bool {
    POOL.try_lock().is_ok()
}

/// The life of a helper.
fn serve(helper: &Helper) {
    let mut desk = locked(&helper.desk);
    loop {
        #[cfg(all(test, feature = "models"))]
        if let Desk::Dismissed = *desk {
            return;
        }
        let Desk::Given(work) = *desk else {
            desk = helper.changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        *desk = Desk::Begun;
        drop(desk);
        // SAFETY: O1.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { &*work.0 }()));
        desk = locked(&helper.desk);
        *desk = Desk::Done(outcome.err());
        helper.changed.notify_one();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(feature = "models")))]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    /// Takes `count` tickets, however many threads there are, and says how many there were.
    fn tickets(helpers: usize, count: usize) -> (usize, usize) {
        let (next, taken, threads) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
        share(helpers, &|| {
            while next.fetch_add(1, Ordering::Relaxed) < count {
                taken.fetch_add(1, Ordering::Relaxed);
                thread::yield_now();
            }
            locked(&threads).push(thread::current().id());
        });
        let threads = threads.into_inner().unwrap();
        let distinct: HashSet<_> = threads.iter().collect();
        assert_eq!(threads.len(), distinct.len(), "each thread is called once");
        (taken.into_inner(), threads.len())
    }

    #[test]
    fn each_ticket_is_taken_once() {
        for helpers in [0, 1, 3] {
            let (taken, threads) = tickets(helpers, 1_000);
            assert_eq!(taken, 1_000);
            assert!((1..=helpers + 1).contains(&threads));
        }
    }

    #[test]
    fn many_share_at_the_same_time() {
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| (0..50).for_each(|_| assert_eq!(tickets(2, 100).0, 100)));
            }
        });
    }

    /// A helper that has begun is waited for; its panic goes on in the caller, and it helps again.
    #[test]
    fn a_panic_goes_on_in_the_caller() {
        let caller = thread::current().id();
        for _ in 0..3 {
            let begun = AtomicUsize::new(0);
            let work = || {
                if thread::current().id() != caller {
                    begun.store(1, Ordering::Release);
                    thread::sleep(Duration::from_millis(5));
                    panic!("of a helper");
                }
                while begun.load(Ordering::Acquire) == 0 {
                    thread::yield_now();
                }
            };
            let panic = catch_unwind(AssertUnwindSafe(|| share(1, &work))).unwrap_err();
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"of a helper"));
            assert_eq!(tickets(1, 100).0, 100);
        }
        let own = catch_unwind(|| share(1, &|| panic!("of both"))).unwrap_err();
        assert_eq!(own.downcast_ref::<&str>(), Some(&"of both"));
        assert_eq!(tickets(1, 100).0, 100);
    }
}

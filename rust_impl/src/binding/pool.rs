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
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// A walk neither recurses nor holds much.
const STACK: usize = 256 << 10;

type Panic = Box<dyn Any + Send>;

/// Those that sleep.
struct Pool {
    process: u32,
    asleep: Vec<Arc<Helper>>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { process: 0, asleep: Vec::new() });

struct Helper {
    desk: Mutex<Desk>,
    changed: Condvar,
}

enum Desk {
    Empty,
    Given(Work),
    Begun,
    Done(Option<Panic>),
}

#[derive(Clone, Copy)]
struct Work(*const (dyn Fn() + Sync));

// SAFETY: O1.
unsafe impl Send for Work {}

/// How many threads can run at the same time.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, |cores| cores.get()))
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

/// The life of a helper.
fn serve(helper: &Helper) {
    let mut desk = locked(&helper.desk);
    loop {
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

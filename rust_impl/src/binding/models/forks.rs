//! A fork beside work without the GIL: the child finds every lock that it will take free.

use std::sync::Arc;

use super::super::fork::{after_fork, before_fork};
use super::super::pool::{dismiss, is_free, share};
use super::stories::{Cache, Call, Tokens};
use super::{Held, explore, spawn};
use crate::sync::Mutex;

const A: Tokens = &[1, 2];
const KEYS: &[Tokens] = &[A, A];

/// A batch with a helper, a single call, and a fork, after which parent and child go on.
#[test]
fn a_fork_finds_every_lock_free() {
    explore(|| {
        let cache = Arc::new(Cache::new(&[(A, 10)]));
        let gil = Arc::new(Mutex::new(()));
        let batch = {
            let (cache, gil) = (Arc::clone(&cache), Arc::clone(&gil));
            spawn(move || {
                let held = Held::take(&gil);
                cache.exclusive.detach(&held, |detached| {
                    let work = || drop(detached.read(|tree| tree.total_size()));
                    share(1, &work);
                });
                cache.make(Call::Batch(KEYS), &held);
            })
        };
        let forking = {
            let (cache, gil) = (Arc::clone(&cache), Arc::clone(&gil));
            spawn(move || {
                let held = Held::take(&gil);
                before_fork();
                // What a child would take.
                assert!(is_free() && cache.exclusive.is_free(&held));
                after_fork();
                cache.make(Call::Insert(&[1, 3], 20), &held);
            })
        };
        batch.join().unwrap();
        forking.join().unwrap();
        dismiss();
        assert_eq!(cache.end().map(|slots| slots.len()), Some(3));
    });
}

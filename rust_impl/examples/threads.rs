//! What two threads on one tree gain over one, and what they lose to two trees: `cargo run --release --example threads`.
//!
//! An operation is a batch of look-ups, or a write: a fresh key inserted and as much evicted. Each way to share the tree
//! is measured beside one thread alone and beside two threads with a tree each, which is as fast as two can be on this
//! machine; all in turns, and the best round counts. Docs: `docs/THREADS.md`.

use std::ops::Range;
use std::sync::{Barrier, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use _triradix_rust::core::{Config, GROUP, Handle, Insertion, Key, Limits, Policy, Request, Touch, Tree};

const RUNS: usize = 1 << 15;
const LENGTH: usize = 256;
/// Keys that a thread looks up in a round, where it writes nothing: so few that a round is over in milliseconds, and some
/// of many are undisturbed on a machine that others use too.
const KEYS: usize = 1 << 12;
const ROUNDS: usize = 100;

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn key(&mut self) -> Vec<u32> {
        (0..LENGTH).map(|_| self.below(128 << 10) as u32).collect()
    }
}

fn request(tokens: &[u32]) -> Request<'_> {
    Request { key: Key::Narrow(tokens), namespace: None, start: None, known: None }
}

/// A way to share a tree between threads.
trait Shared: Sync {
    fn new(tree: Tree) -> Self;
    fn find(&self, keys: &[&[u32]], found: &mut [Handle]);
    fn write<T>(&self, work: impl FnOnce(&mut Tree) -> T) -> T;
}

fn find_all(tree: &Tree, keys: &[&[u32]], found: &mut [Handle]) -> Vec<Touch> {
    let mut touches = Vec::with_capacity(keys.len());
    for (keys, found) in keys.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
        tree.prefetch(keys.iter().map(|key| request(key)));
        for (key, found) in keys.iter().zip(found) {
            let (handle, touch) = tree.find_prefix(request(key)).expect("keys are of tokens, and none has a start");
            *found = handle;
            touches.push(touch);
        }
    }
    touches
}

/// One at a time.
struct InTurns(Mutex<Tree>);

impl Shared for InTurns {
    fn new(tree: Tree) -> Self {
        Self(Mutex::new(tree))
    }

    fn find(&self, keys: &[&[u32]], found: &mut [Handle]) {
        self.write(|tree| {
            let touches = find_all(tree, keys, found);
            tree.note_all(&touches).expect("there is memory");
            tree.drain_touches().expect("there is memory");
        });
    }

    fn write<T>(&self, work: impl FnOnce(&mut Tree) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Look-ups side by side, and each batch writes its refreshes at once.
struct Eager(RwLock<Tree>);

impl Shared for Eager {
    fn new(tree: Tree) -> Self {
        Self(RwLock::new(tree))
    }

    fn find(&self, keys: &[&[u32]], found: &mut [Handle]) {
        {
            let tree = self.0.read().unwrap_or_else(PoisonError::into_inner);
            tree.note_all(&find_all(&tree, keys, found)).expect("there is memory");
        }
        self.write(|tree| tree.drain_touches().expect("there is memory"));
    }

    fn write<T>(&self, work: impl FnOnce(&mut Tree) -> T) -> T {
        work(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Look-ups side by side; their refreshes wait in a log for the next writer, or for a moment when nobody is there. So the
/// module does it.
struct Logged(RwLock<Tree>);

impl Shared for Logged {
    fn new(tree: Tree) -> Self {
        Self(RwLock::new(tree))
    }

    fn find(&self, keys: &[&[u32]], found: &mut [Handle]) {
        let full = {
            let tree = self.0.read().unwrap_or_else(PoisonError::into_inner);
            tree.note_all(&find_all(&tree, keys, found)).expect("there is memory")
        };
        if let Ok(mut tree) = self.0.try_write() {
            tree.drain_touches().expect("there is memory");
        } else if full {
            self.write(|tree| tree.drain_touches().expect("there is memory"));
        }
    }

    fn write<T>(&self, work: impl FnOnce(&mut Tree) -> T) -> T {
        work(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One thread's share of a round.
struct Load {
    stored: Vec<Vec<u32>>,
    fresh: Vec<Vec<u32>>,
    batch: usize,
    /// One operation in so many is a write; 0: none.
    every: usize,
}

impl Load {
    fn new(seed: u64, keys: &[Vec<u32>], batch: usize, every: usize) -> Self {
        let mut random = Random(seed);
        let operations = KEYS / batch;
        let stored = (0..KEYS).map(|_| keys[random.below(keys.len())].clone()).collect();
        let writes = if every == 0 { 0 } else { operations.div_ceil(every) };
        Self { stored, fresh: (0..writes).map(|_| random.key()).collect(), batch, every }
    }

    /// From when to when it took, and how long each of its look-ups.
    fn run(&self, tree: &impl Shared) -> (Range<Instant>, Vec<Duration>) {
        let slots: Vec<i64> = (0..LENGTH as i64).collect();
        let mut fresh = self.fresh.iter();
        let mut found = vec![Handle::nowhere(); self.batch];
        let keys: Vec<&[u32]> = self.stored.iter().map(Vec::as_slice).collect();
        let mut latencies = Vec::with_capacity(KEYS / self.batch);
        let began = Instant::now();
        for (number, keys) in keys.chunks(self.batch).enumerate() {
            if self.every > 0 && number % self.every == 0 {
                let tokens = fresh.next().expect("a fresh key for each write");
                tree.write(|tree| {
                    let insertion = Insertion { request: request(tokens), slots: &slots, priority: 0, inserted_len: 0 };
                    tree.insert(&insertion).expect("there is memory");
                    tree.evict(LENGTH as u64).expect("there is memory");
                });
            } else {
                let before = Instant::now();
                tree.find(keys, &mut found);
                latencies.push(before.elapsed());
            }
        }
        (began..Instant::now(), latencies)
    }
}

fn planted(keys: &[Vec<u32>]) -> Tree {
    let limits = Limits::default();
    let mut tree = Tree::new(Config {
        page_size: 1,
        policy: Policy::Lru,
        bigram: false,
        slru_threshold: 2,
        events: false,
        limits,
    });
    let slots: Vec<i64> = (0..LENGTH as i64).collect();
    for tokens in keys {
        let insertion = Insertion { request: request(tokens), slots: &slots, priority: 0, inserted_len: 0 };
        tree.insert(&insertion).expect("there is memory");
    }
    tree
}

/// The time until both have done their loads, and all their latencies.
fn together<S: Shared>(trees: [&S; 2], loads: &[Load; 2]) -> (Duration, Vec<Duration>) {
    let barrier = Barrier::new(2);
    let run = |number: usize| {
        barrier.wait();
        loads[number].run(trees[number])
    };
    let [(first, mut latencies), (second, more)] = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        let own = run(0);
        [own, other.join().expect("no thread panics")]
    });
    latencies.extend(more);
    (first.end.max(second.end) - first.start.min(second.start), latencies)
}

fn p99(mut latencies: Vec<Duration>) -> Duration {
    latencies.sort_unstable();
    latencies.get(latencies.len() * 99 / 100).copied().unwrap_or_default()
}

fn measure<S: Shared>(name: &str, keys: &[Vec<u32>], batch: usize, every: usize) {
    let loads = [Load::new(1, keys, batch, every), Load::new(2, keys, batch, every)];
    let reads = [Load::new(3, keys, batch, 0), Load::new(4, keys, batch, 0)];
    let trees = [S::new(planted(keys)), S::new(planted(keys))];
    let [mut one, mut two, mut apart, mut busy, mut idle] = [Duration::MAX; 5];
    for _ in 0..ROUNDS {
        let alone = loads.each_ref().map(|load| load.run(&trees[0]).0);
        one = one.min(alone[1].end - alone[0].start);
        apart = apart.min(together([&trees[0], &trees[1]], &loads).0);
        let (time, latencies) = together([&trees[0]; 2], &loads);
        two = two.min(time);
        busy = busy.min(p99(latencies));
        idle = idle.min(p99(together([&trees[0]; 2], &reads).1));
    }
    trees[0].write(|tree| {
        tree.drain_touches().expect("there is memory");
        tree.check().expect("the tree is sound");
    });
    let gain = |time: Duration| one.as_secs_f64() / time.as_secs_f64();
    println!(
        "{name:32} {:8.2} µs {:6.2} {:6.2} {:9.2} {:8.1} µs {:8.1} µs",
        one.as_secs_f64() * 1e6 / (2 * KEYS / batch) as f64,
        gain(two),
        gain(apart),
        gain(two) / gain(apart),
        busy.as_secs_f64() * 1e6,
        idle.as_secs_f64() * 1e6,
    );
}

fn main() {
    let mut random = Random(0);
    let keys: Vec<Vec<u32>> = (0..RUNS).map(|_| random.key()).collect();
    for batch in [64, 1] {
        for (mix, every) in [("95/5", 20), ("50/50", 2)] {
            println!("\n{mix}, look-ups in batches of {batch}");
            println!(
                "{:32} {:>11} {:>6} {:>6} {:>9} {:>11} {:>11}",
                "", "one thread", "gain", "apart", "of apart", "p99 reads", "no writes"
            );
            measure::<InTurns>("one at a time", &keys, batch, every);
            measure::<Eager>("side by side, refreshed at once", &keys, batch, every);
            measure::<Logged>("side by side, refreshes logged", &keys, batch, every);
        }
    }
}

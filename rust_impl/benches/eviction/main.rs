//! Who goes next: an ordered list, heaps that know where their entries are, lazy heaps, and a heap made anew each time.

#[path = "../common/mod.rs"]
mod common;
mod queues;

use common::{Criterion, Random};
use criterion::{BenchmarkId, criterion_group, criterion_main};
use queues::{AllLeaves, CrateHeap, Indexed, LazyAtPop, LazyAtTouch, List, Queue};

/// No place.
const NIL: u32 = u32::MAX;

const LEAF_TOKENS: usize = 128;
const EVICTED_TOKENS: usize = 512;
const SIZES: [(&str, usize); 4] = [("1K", 1 << 10), ("10K", 10_000), ("100K", 100_000), ("1M", 1_000_000)];

/// A full cache of `leaves` leaves; the tick of the last access is the rank.
struct Cache<Q> {
    queue: Q,
    last: Vec<u64>,
    clock: u64,
    random: Random,
    evicted: Vec<u32>,
}

impl<Q: Queue> Cache<Q> {
    fn new(leaves: usize) -> Self {
        let last = vec![0; leaves];
        let queue = Q::new(leaves);
        let mut cache = Cache { queue, last, clock: 0, random: Random(10), evicted: Vec::new() };
        (0..leaves as u32).for_each(|leaf| cache.write(leaf, true));
        cache
    }

    fn write(&mut self, leaf: u32, new: bool) {
        self.clock += 1;
        self.last[leaf as usize] = self.clock;
        if new {
            self.queue.insert(&self.last, leaf);
        } else {
            self.queue.touch(&self.last, leaf);
        }
    }

    fn touch(&mut self) {
        let leaf = self.random.below(self.last.len()) as u32;
        self.write(leaf, false);
    }

    /// What a scheduling step asks for: some matches, then room for a new prompt, then the prompt.
    fn step(&mut self, touches: usize) {
        (0..touches).for_each(|_| self.touch());
        self.evicted.clear();
        self.queue.evict(&self.last, EVICTED_TOKENS / LEAF_TOKENS, &mut self.evicted);
        for at in 0..self.evicted.len() {
            self.write(self.evicted[at], true);
        }
    }
}

/// The ids that go, in their order.
fn script<Q: Queue>() -> Vec<u32> {
    let mut cache = Cache::<Q>::new(1_000);
    let mut gone = Vec::new();
    for step in 0..2_000 {
        cache.step(step % 9);
        gone.extend_from_slice(&cache.evicted);
    }
    gone
}

fn measure<Q: Queue>(criterion: &mut Criterion) {
    assert_eq!(script::<Q>(), script::<AllLeaves>(), "{}", Q::NAME);
    for touches in [4, 64] {
        let mut group = criterion.benchmark_group(format!("eviction, {touches} touches a step"));
        for (label, leaves) in &SIZES[..common::size(SIZES.len(), 1)] {
            let mut cache = Cache::<Q>::new(*leaves);
            // Until the order has nothing to do with that of the ids, and what is lazy has caught up.
            if Q::REMEMBERS {
                (0..leaves / 4).for_each(|_| cache.step(touches));
            } else {
                (0..2 * leaves).for_each(|_| cache.touch());
            }
            group.bench_function(BenchmarkId::new(Q::NAME, *label), |bencher| {
                bencher.iter(|| cache.step(touches));
            });
        }
        group.finish();
    }
}

fn eviction(criterion: &mut Criterion) {
    common::noise(criterion, "eviction");
    measure::<AllLeaves>(criterion);
    measure::<LazyAtTouch>(criterion);
    measure::<LazyAtPop>(criterion);
    measure::<Indexed<2>>(criterion);
    measure::<Indexed<4>>(criterion);
    measure::<Indexed<8>>(criterion);
    measure::<CrateHeap>(criterion);
    measure::<List>(criterion);
}

criterion_group! { name = benches; config = common::config(); targets = eviction }
criterion_main!(benches);

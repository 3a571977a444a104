//! Where runs and their tokens live: in slabs and generations of the tree's own, or each in a block of the heap.

#[path = "../common/mod.rs"]
mod common;
mod nodes;
mod spans;

use std::hint::black_box;

use common::{Criterion, Random};
use criterion::{BatchSize, BenchmarkId, Throughput, criterion_group, criterion_main};
use nodes::{Boxed, Counted, Forest, LEVELS, Slabbed};
use spans::{Blocks, Generations, SLOTS_OF_A_LEAF, Store, Vecs};

/// No node, no generation.
const NIL: u32 = u32::MAX;

fn count() -> usize {
    common::size(200_000, 2_000)
}

fn nodes<F: Forest>(criterion: &mut Criterion) {
    let chains = count() / LEVELS;
    let forest = F::new(chains);
    let expected: usize = (0..LEVELS).sum();
    assert!((0..chains).all(|chain| forest.walk(chain) == expected), "{}", F::NAME);

    let mut group = criterion.benchmark_group("arena, walk of 64 nested nodes");
    group.bench_function(BenchmarkId::new(F::NAME, "in cache"), |bencher| {
        bencher.iter(|| forest.walk(black_box(0)));
    });
    let order = Random(13).shuffled(chains);
    let mut turn = 0;
    group.bench_function(BenchmarkId::new(F::NAME, "one of 3,125 such paths"), |bencher| {
        bencher.iter(|| {
            turn = (turn + 1) % order.len();
            forest.walk(order[turn])
        });
    });
    drop(group);

    let mut group = criterion.benchmark_group("arena, 200,000 nodes, a node");
    group.throughput(Throughput::Elements((chains * LEVELS) as u64));
    group.bench_function(BenchmarkId::new(F::NAME, "built"), |bencher| {
        bencher.iter_with_large_drop(|| F::new(chains));
    });
    group.bench_function(BenchmarkId::new(F::NAME, "dropped"), |bencher| {
        bencher.iter_batched(|| F::new(chains), drop, BatchSize::PerIteration);
    });
}

/// Tokens and slots of so many leaves, which need not differ. The slots take 8 bytes, as in the alternatives.
fn leaf() -> (Vec<u32>, Vec<i64>) {
    ((0..SLOTS_OF_A_LEAF as u32).collect(), (0..SLOTS_OF_A_LEAF as i64).map(|slot| slot << 32 | 1).collect())
}

fn built<S: Store>() -> S {
    let (tokens, slots) = leaf();
    let mut store = S::default();
    (0..count()).for_each(|_| store.push(&tokens, &slots));
    store
}

/// Every leaf holds what was put in last, however often others were replaced.
fn check<S: Store>() {
    let mut store = S::default();
    let mut random = Random(14);
    let content = |seed: u64| -> (Vec<u32>, Vec<i64>) {
        ((0..16).map(|at| (seed + at) as u32).collect(), (0..16).map(|at| -((seed * at) as i64) - 1).collect())
    };
    let mut seeds: Vec<u64> = (0..20_000).collect();
    seeds.iter().for_each(|&seed| store.push(&content(seed).0, &content(seed).1));
    for seed in 20_000..100_000 {
        let at = random.below(seeds.len());
        seeds[at] = seed;
        store.replace(at, &content(seed).0, &content(seed).1);
    }
    for (at, &seed) in seeds.iter().enumerate() {
        assert_eq!(store.get(at), (&content(seed).0[..], &content(seed).1[..]), "{}", S::NAME);
    }
}

fn spans<S: Store>(criterion: &mut Criterion) {
    check::<S>();
    let mut group = criterion.benchmark_group("arena, 200,000 leaves of 16 tokens, a leaf");
    group.throughput(Throughput::Elements(count() as u64));
    group.bench_function(BenchmarkId::new(S::NAME, "built"), |bencher| {
        bencher.iter_with_large_drop(built::<S>);
    });
    group.bench_function(BenchmarkId::new(S::NAME, "dropped"), |bencher| {
        bencher.iter_batched(built::<S>, drop, BatchSize::PerIteration);
    });
    group.throughput(Throughput::Elements(1));
    let (tokens, slots) = leaf();
    let orders: [(_, Vec<usize>); 2] =
        [("oldest replaced", (0..count()).collect()), ("any replaced", Random(15).shuffled(count()))];
    for (label, order) in orders {
        let mut store = built::<S>();
        let (mut turn, count) = (0, order.len());
        group.bench_function(BenchmarkId::new(S::NAME, label), |bencher| {
            bencher.iter(|| {
                turn = (turn + 1) % count;
                store.replace(order[turn], black_box(&tokens), black_box(&slots));
            });
        });
    }
}

fn arena(criterion: &mut Criterion) {
    common::noise(criterion, "arena");
    nodes::<Slabbed>(criterion);
    nodes::<Boxed>(criterion);
    nodes::<Counted>(criterion);
    spans::<Generations>(criterion);
    spans::<Blocks>(criterion);
    spans::<Vecs>(criterion);
}

criterion_group! { name = benches; config = common::config(); targets = arena }
criterion_main!(benches);

//! A key against a stored run: how tokens are stored, and how they are compared.

#[path = "../common/mod.rs"]
mod common;
mod kernels;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::cell::RefCell;
use std::hint::black_box;

use common::{Criterion, Random};
use criterion::{BenchmarkId, criterion_group, criterion_main};
use kernels::Token;

type Kernel<K, S> = Box<dyn Fn(&[K], &[S]) -> usize>;
type Kernels<K, S> = Vec<(&'static str, Kernel<K, S>)>;

const SIZES: [(&str, usize); 5] = [("16", 16), ("128", 128), ("1K", 1 << 10), ("8K", 8 << 10), ("128K", 128 << 10)];
/// Well beyond any L3 cache, so that a run is cold whenever its turn comes.
const COLD_BYTES: usize = 256 << 20;

/// A kernel of `x86`, which the caller knows this CPU to have.
#[cfg(target_arch = "x86_64")]
macro_rules! detected {
    ($kernel:path) => {
        // SAFETY: only called where the CPU has the features; see `has_avx2` and `has_avx512`.
        Box::new(|key, stored| unsafe { $kernel(key, stored) })
    };
}

fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

fn narrow_narrow() -> Kernels<u32, u32> {
    let mut all: Kernels<u32, u32> = vec![
        ("element loop", Box::new(kernels::element_loop)),
        ("memcmp, then again for the position", Box::new(kernels::memcmp_again)),
        ("memcmp, then halving", Box::new(kernels::memcmp_bisect)),
        ("memcmp by blocks of 64", Box::new(kernels::memcmp_blocks::<64, u32>)),
        ("memcmp by blocks of 512", Box::new(kernels::memcmp_blocks::<512, u32>)),
        ("portable blocks (SSE2)", Box::new(kernels::blocks)),
    ];
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        all.push(("portable blocks, compiled for AVX2", detected!(x86::blocks_avx2)));
        all.push(("AVX2", detected!(x86::narrow_key_avx2)));
    }
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        all.push(("portable blocks, compiled for AVX-512", detected!(x86::blocks_avx512)));
        all.push(("AVX-512", detected!(x86::narrow_key_avx512)));
    }
    all
}

/// Narrows the key into a buffer that is used again; a token that does not fit ends the prefix.
fn narrow_first(narrow: impl Fn(&[i64], &mut [u32]) -> bool + 'static) -> Kernel<i64, u32> {
    let scratch = RefCell::new(vec![0; 128 << 10]);
    Box::new(move |key, stored| {
        let scratch = &mut scratch.borrow_mut()[..key.len()];
        if narrow(key, scratch) { kernels::memcmp_again(scratch, stored) } else { kernels::blocks(key, stored) }
    })
}

fn wide_narrow() -> Kernels<i64, u32> {
    let mut all: Kernels<i64, u32> = vec![
        ("element loop", Box::new(kernels::element_loop)),
        ("portable blocks (SSE2)", Box::new(kernels::blocks)),
        ("key narrowed (SSE2), then memcmp", narrow_first(kernels::narrow)),
    ];
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        all.push(("portable blocks, compiled for AVX2", detected!(x86::blocks_avx2)));
        all.push(("AVX2", detected!(x86::wide_key_avx2)));
    }
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the CPU has the features.
        let narrow = |key: &[i64], scratch: &mut [u32]| unsafe { x86::narrow_avx512(key, scratch) };
        all.push(("key narrowed (AVX-512), then memcmp", narrow_first(narrow)));
        all.push(("portable blocks, compiled for AVX-512", detected!(x86::blocks_avx512)));
        all.push(("AVX-512, stored tokens widened", detected!(x86::wide_key_avx512)));
        all.push(("AVX-512, key narrowed in the register", detected!(x86::wide_key_permuted_avx512)));
    }
    all
}

fn wide_wide() -> Kernels<i64, i64> {
    let mut all: Kernels<i64, i64> = vec![
        ("element loop", Box::new(kernels::element_loop)),
        ("memcmp, then again for the position", Box::new(kernels::memcmp_again)),
    ];
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        all.push(("AVX-512", detected!(x86::wide_both_avx512)));
    }
    all
}

fn narrow_wide() -> Kernels<u32, i64> {
    let mut all: Kernels<u32, i64> = vec![("element loop", Box::new(kernels::element_loop))];
    all.push(("portable blocks (SSE2)", Box::new(kernels::blocks)));
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the CPU has the features. The roles of key and run are swapped.
        all.push(("AVX-512, key widened", Box::new(|key, stored| unsafe { x86::wide_key_avx512(stored, key) })));
    }
    all
}

/// Both forms of the same tokens.
trait Form: Token {
    fn of(token: u32) -> Self;
}

impl Form for u32 {
    fn of(token: u32) -> u32 {
        token
    }
}

impl Form for i64 {
    fn of(token: u32) -> i64 {
        i64::from(token)
    }
}

fn tokens<T: Form>(len: usize) -> Vec<T> {
    let mut random = Random(2);
    (0..len).map(|_| T::of(random.token())).collect()
}

/// Every kernel finds every position, at lengths around each block size.
fn check<K: Form, S: Form>(kernels: &Kernels<K, S>) {
    for len in [0, 1, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 200, 511, 512, 513, 1_000] {
        let key = tokens::<K>(len);
        for at in 0..=len {
            let mut stored = tokens::<S>(len);
            if at < len {
                stored[at] = S::of(1 << 20);
            }
            // What follows the difference must not matter.
            stored.iter_mut().skip(at + 2).step_by(3).for_each(|token| *token = S::of(1 << 21));
            for (name, kernel) in kernels {
                assert_eq!(kernel(&key, &stored), at, "{name}, {len} tokens");
            }
        }
    }
}

/// Key and run are equal, and lie in the cache if it is large enough.
fn hot<K: Form, S: Form>(criterion: &mut Criterion, forms: &str, kernels: &Kernels<K, S>) {
    check(kernels);
    let mut group = criterion.benchmark_group(format!("compare, hot, {forms}"));
    for (label, len) in SIZES {
        let (key, stored) = (tokens::<K>(len), tokens::<S>(len));
        for (name, kernel) in kernels {
            group.bench_function(BenchmarkId::new(*name, label), |bencher| {
                bencher.iter(|| kernel(black_box(&key), black_box(&stored)));
            });
        }
    }
    group.finish();
}

/// The key is warm, as one that was just made; the runs come from memory, in an order that no prefetcher foresees.
fn cold<K: Form, S: Form>(criterion: &mut Criterion, forms: &str, kernels: &Kernels<K, S>) {
    let mut group = criterion.benchmark_group(format!("compare, cold, {forms}"));
    for (label, len) in &SIZES[1..] {
        let key = tokens::<K>(*len);
        let count = common::size(COLD_BYTES / (len * size_of::<S>()), 1);
        let runs = tokens::<S>(*len).repeat(count);
        let order = Random(3).shuffled(count);
        for (name, kernel) in kernels {
            let mut turn = 0;
            group.bench_function(BenchmarkId::new(*name, label), |bencher| {
                bencher.iter(|| {
                    turn = if turn + 1 == count { 0 } else { turn + 1 };
                    let from = order[turn] * len;
                    kernel(black_box(&key), &runs[from..from + len])
                });
            });
        }
    }
    group.finish();
}

/// The key leaves the run at a position that no branch predictor foresees; on average it is half the length.
fn differing<K: Form, S: Form>(criterion: &mut Criterion, forms: &str, kernels: &Kernels<K, S>) {
    let mut group = criterion.benchmark_group(format!("compare, differing, {forms}"));
    for (label, len) in &SIZES[..4] {
        let stored = tokens::<S>(*len);
        let mut random = Random(4);
        let mut key = tokens::<K>(*len);
        let places: Vec<usize> = (0..4096).map(|_| random.below(*len)).collect();
        for (name, kernel) in kernels {
            let (mut turn, mut before) = (0, 0);
            group.bench_function(BenchmarkId::new(*name, label), |bencher| {
                bencher.iter(|| {
                    turn = (turn + 1) % places.len();
                    key[before] = K::of(stored[before].wide() as u32);
                    before = places[turn];
                    key[before] = K::of(1 << 20);
                    kernel(black_box(&key), black_box(&stored))
                });
            });
            key[before] = K::of(stored[before].wide() as u32);
        }
    }
    group.finish();
}

fn compare(criterion: &mut Criterion) {
    if !has_avx2() || !has_avx512() {
        println!("AVX2: {}, AVX-512: {}. What this CPU has not got is left out.", has_avx2(), has_avx512());
    }
    common::noise(criterion, "compare");
    hot(criterion, "u32 key, u32 stored", &narrow_narrow());
    hot(criterion, "int64 key, u32 stored", &wide_narrow());
    hot(criterion, "int64 key, int64 stored", &wide_wide());
    hot(criterion, "u32 key, int64 stored", &narrow_wide());
    cold(criterion, "u32 key, u32 stored", &narrow_narrow());
    cold(criterion, "int64 key, u32 stored", &wide_narrow());
    cold(criterion, "int64 key, int64 stored", &wide_wide());
    differing(criterion, "u32 key, u32 stored", &narrow_narrow());
    differing(criterion, "int64 key, u32 stored", &wide_narrow());
}

criterion_group! { name = benches; config = common::config(); targets = compare }
criterion_main!(benches);

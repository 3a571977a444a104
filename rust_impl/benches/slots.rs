//! The KV slots of a run of 8K units: as int64, as u32, or as runs of consecutive ones; copied in and out.

#[path = "common/mod.rs"]
mod common;

use std::hint::black_box;

use common::{Criterion, Random};
use criterion::{BenchmarkId, criterion_group, criterion_main};

const UNITS: usize = 8 << 10;

/// Slots as an allocator with pages of `page` gives them after a while: consecutive within a page only.
fn paged(page: usize) -> Vec<i64> {
    let pages = Random(16).shuffled(UNITS / page);
    pages.into_iter().flat_map(|number| (0..page).map(move |at| (number * page + at) as i64)).collect()
}

#[inline(always)]
fn widen(stored: &[u32], out: &mut [i64]) {
    out.iter_mut().zip(stored).for_each(|(out, &slot)| *out = i64::from(slot));
}

/// Whether all fit.
#[inline(always)]
fn narrow(slots: &[i64], stored: &mut [u32]) -> bool {
    let mut high = 0;
    for (stored, &slot) in stored.iter_mut().zip(slots) {
        *stored = slot as u32;
        high |= slot;
    }
    high as u64 >> 32 == 0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn widen_avx2(stored: &[u32], out: &mut [i64]) {
    widen(stored, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn narrow_avx2(slots: &[i64], stored: &mut [u32]) -> bool {
    narrow(slots, stored)
}

/// (first slot, length) of what is consecutive. Blocks that are so as a whole are told without a branch a slot.
fn runs(slots: &[i64], runs: &mut Vec<(i64, u32)>) {
    runs.clear();
    let mut add = |first: i64, len: u32| match runs.last_mut() {
        Some((start, before)) if *start + i64::from(*before) == first => *before += len,
        _ => runs.push((first, len)),
    };
    let (blocks, rest) = slots.as_chunks::<16>();
    for block in blocks {
        if (0..16).fold(0, |differ, at| differ | (block[at] - block[0] - at as i64)) == 0 {
            add(block[0], 16);
        } else {
            block.iter().for_each(|&slot| add(slot, 1));
        }
    }
    rest.iter().for_each(|&slot| add(slot, 1));
}

fn expand(runs: &[(i64, u32)], mut out: &mut [i64]) {
    for &(first, len) in runs {
        let (here, rest) = out.split_at_mut(len as usize);
        here.iter_mut().zip(first..).for_each(|(out, slot)| *out = slot);
        out = rest;
    }
}

fn measure(criterion: &mut Criterion, label: &str, slots: &[i64]) {
    let mut bench = |way: &str, name: &str, work: &mut dyn FnMut()| {
        let mut group = criterion.benchmark_group(format!("slots, 8K copied {way}"));
        group.bench_function(BenchmarkId::new(name, label), |bencher| bencher.iter(&mut *work));
        group.finish();
    };
    let mut out = vec![0; UNITS];
    bench("in", "int64", &mut || black_box(&mut out).copy_from_slice(black_box(slots)));
    let mut stored = vec![0; UNITS];
    assert!(narrow(slots, &mut stored));
    bench("in", "u32 (SSE2)", &mut || assert!(narrow(black_box(slots), black_box(&mut stored))));
    let mut parts = Vec::new();
    bench("in", "runs of consecutive slots", &mut || runs(black_box(slots), black_box(&mut parts)));
    runs(slots, &mut parts);
    let expected = slots.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0], run.len() as u32));
    assert!(parts.iter().copied().eq(expected));

    bench("out", "int64", &mut || black_box(&mut out).copy_from_slice(black_box(slots)));
    let check = |out: &mut Vec<i64>| {
        assert_eq!(out, slots);
        out.fill(-1);
    };
    check(&mut out);
    widen(&stored, &mut out);
    check(&mut out);
    expand(&parts, &mut out);
    check(&mut out);
    bench("out", "u32 (SSE2)", &mut || widen(black_box(&stored), black_box(&mut out)));
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        bench("in", "u32 (AVX2)", &mut || assert!(unsafe { narrow_avx2(black_box(slots), black_box(&mut stored)) }));
        // SAFETY: the same.
        bench("out", "u32 (AVX2)", &mut || unsafe { widen_avx2(black_box(&stored), black_box(&mut out)) });
        check(&mut out);
    }
    bench("out", "runs of consecutive slots", &mut || expand(black_box(&parts), black_box(&mut out)));
}

fn slots(criterion: &mut Criterion) {
    common::noise(criterion, "slots");
    measure(criterion, "one run", &paged(UNITS));
    measure(criterion, "pages of 64", &paged(64));
    measure(criterion, "pages of 16", &paged(16));
    measure(criterion, "single slots", &paged(1));
}

criterion_group! { name = benches; config = common::config(); targets = slots }
criterion_main!(benches);

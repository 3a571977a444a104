//! The KV slots of a run of 8K units: as int64, as u32, or as runs of consecutive ones; copied in and out.

#[path = "../common/mod.rs"]
mod common;
mod forms;

use std::hint::black_box;

use common::Criterion;
use criterion::{BenchmarkId, criterion_group, criterion_main};
use forms::{UNITS, expand, narrow, paged, runs, widen};
#[cfg(target_arch = "x86_64")]
use forms::{narrow_avx2, widen_avx2};

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
    widen(&stored, &mut out);
    check(&mut out);
    expand(&parts, &mut out);
    check(&mut out);
    bench("out", "u32 (SSE2)", &mut || widen(black_box(&stored), black_box(&mut out)));
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        assert!(unsafe { narrow_avx2(slots, &mut stored) });
        // SAFETY: the same.
        unsafe { widen_avx2(&stored, &mut out) };
        check(&mut out);
        // SAFETY: the same.
        bench("in", "u32 (AVX2)", &mut || assert!(unsafe { narrow_avx2(black_box(slots), black_box(&mut stored)) }));
        // SAFETY: the same.
        bench("out", "u32 (AVX2)", &mut || unsafe { widen_avx2(black_box(&stored), black_box(&mut out)) });
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

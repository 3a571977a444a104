//! What the ablations share: seeded numbers, how long to measure, and a probe for the noise of the machine.

// No part uses all of it.
#![allow(dead_code)]

pub mod linear;

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};

pub type Criterion = criterion::Criterion<CpuTime>;

/// Briefly, since there are hundreds of benchmarks; criterion's options (`--measurement-time 5`) override them.
pub fn config() -> Criterion {
    criterion::Criterion::default()
        .with_measurement(CpuTime)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .sample_size(30)
        .nresamples(10_000)
}

/// `full` if it is to be measured, `least` if the answers are only checked (`cargo test --benches`).
pub fn size(full: usize, least: usize) -> usize {
    if std::env::args().any(|argument| argument == "--bench") { full } else { least }
}

/// What the thread was on a CPU for. Others on the machine still take cache and bandwidth, but no longer whole turns.
pub struct CpuTime;

impl CpuTime {
    pub fn now() -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a timespec to write to.
        let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        assert_eq!(failed, 0, "the system has a clock for the CPU time of a thread");
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        Self::now()
    }

    fn end(&self, start: Duration) -> Duration {
        Self::now() - start
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// splitmix64: the same numbers everywhere, for ever.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    /// A token of a vocabulary of 128K entries.
    pub fn token(&mut self) -> u32 {
        self.below(128 << 10) as u32
    }

    pub fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        (1..count).rev().for_each(|at| order.swap(at, self.below(at + 1)));
        order
    }
}

/// The same two pieces of work at the beginning of each part: how far their medians lie apart says how far the figures
/// of different parts may be trusted.
pub fn noise(criterion: &mut Criterion, part: &str) {
    let mut group = criterion.benchmark_group("noise");
    let (a, b) = (vec![7_u32; 8 << 10], vec![7_u32; 8 << 10]);
    group.bench_function(criterion::BenchmarkId::new("memcmp of 8K tokens, in cache", part), |bencher| {
        bencher.iter(|| black_box(&a[..]) == black_box(&b[..]));
    });
    // One cycle through 64 MiB, a line a step, so that each load waits for the one before.
    let order = Random(1).shuffled(size(1 << 20, 1 << 10));
    let mut next = vec![[0_u32; 16]; order.len()];
    for (at, &line) in order.iter().enumerate() {
        next[line][0] = order[(at + 1) % order.len()] as u32;
    }
    let mut line = 0;
    group.bench_function(criterion::BenchmarkId::new("one dependent load out of 64 MiB", part), |bencher| {
        bencher.iter(|| {
            line = next[line as usize][0];
            line
        });
    });
    group.finish();
}

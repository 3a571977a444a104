//! What a match writes: the last access of every run of its path, a mark where it ended, or a line in a log.

#[path = "common/mod.rs"]
mod common;

use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use common::{CpuTime, Criterion, Random};
use criterion::{BenchmarkId, criterion_group, criterion_main};
use hashbrown::HashTable;

const NIL: u32 = u32::MAX;

/// Page size 1, as small a tree as can be matched. What is written is atomic, since matches may run side by side.
struct Run {
    hash: u64,
    parent: u32,
    start: u32,
    tokens: Vec<u32>,
    last: AtomicU64,
    /// Where its mark stands: marks are apart from the runs, as in the crate.
    mark: u32,
}

struct Tree {
    hasher: foldhash::quality::RandomState,
    runs: Vec<Run>,
    children: HashTable<u32>,
    marks: Vec<AtomicU64>,
    clock: AtomicU64,
    log: Log,
}

/// Room for what is written between two evictions; whoever evicts writes the marks. (Here any thread does when it is
/// full, without the lock that would keep the others from writing meanwhile: good enough to be timed.)
struct Log {
    claimed: AtomicUsize,
    entries: Vec<(AtomicU32, AtomicU64)>,
}

const LOG: usize = 64;

impl Tree {
    fn new() -> Self {
        let root = Run { hash: 0, parent: NIL, start: 0, tokens: Vec::new(), last: AtomicU64::new(0), mark: 0 };
        let entries = (0..LOG).map(|_| (AtomicU32::new(0), AtomicU64::new(0))).collect();
        Tree {
            hasher: Default::default(),
            runs: vec![root],
            children: HashTable::new(),
            marks: vec![AtomicU64::new(0)],
            clock: AtomicU64::new(0),
            log: Log { claimed: AtomicUsize::new(0), entries },
        }
    }

    fn hash(&self, parent: u32, first: u32) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(u64::from(parent) << 32 | u64::from(first));
        hasher.finish()
    }

    fn add(&mut self, parent: u32, tokens: &[u32]) -> u32 {
        let above = &self.runs[parent as usize];
        let (id, hash) = (self.runs.len() as u32, self.hash(parent, tokens[0]));
        let start = above.start + above.tokens.len() as u32;
        self.runs.push(Run { hash, parent, start, tokens: tokens.to_vec(), last: AtomicU64::new(0), mark: id });
        self.marks.push(AtomicU64::new(0));
        self.children.insert_unique(hash, id, |&id| self.runs[id as usize].hash);
        id
    }

    /// The run in which the match ends, and `visit` for each on the way.
    fn walk(&self, key: &[u32], visit: impl Fn(&Run)) -> u32 {
        let (mut run, mut depth) = (0, 0);
        while depth < key.len() {
            let hash = self.hash(run, key[depth]);
            let is_it = |&id: &u32| {
                let child = &self.runs[id as usize];
                child.hash == hash && child.parent == run && child.tokens[0] == key[depth]
            };
            let Some(&child) = self.children.find(hash, is_it) else { break };
            let here = &self.runs[child as usize];
            let end = (depth + here.tokens.len()).min(key.len());
            if here.tokens[..end - depth] != key[depth..end] {
                break;
            }
            visit(here);
            (run, depth) = (child, end);
        }
        run
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Relaxed) + 1
    }

    fn drain(&self) {
        let count = self.log.claimed.swap(0, Relaxed).min(LOG);
        self.clock.fetch_add(count as u64, Relaxed);
        for (run, tick) in &self.log.entries[..count] {
            self.marks[self.runs[run.load(Relaxed) as usize].mark as usize].fetch_max(tick.load(Relaxed), Relaxed);
        }
    }
}

type Match = fn(&Tree, &[u32]) -> u32;

fn nothing(tree: &Tree, key: &[u32]) -> u32 {
    tree.walk(key, |_| ())
}

fn whole_path(tree: &Tree, key: &[u32]) -> u32 {
    let now = tree.tick();
    tree.walk(key, |run| run.last.store(now, Relaxed))
}

fn mark_at_the_end(tree: &Tree, key: &[u32]) -> u32 {
    let run = tree.walk(key, |_| ());
    tree.marks[tree.runs[run as usize].mark as usize].store(tree.tick(), Relaxed);
    run
}

/// The place in the log is the tick as well. A full log is drained here, so that its cost is in the figure.
fn logged(tree: &Tree, key: &[u32]) -> u32 {
    let run = tree.walk(key, |_| ());
    loop {
        let place = tree.log.claimed.fetch_add(1, Relaxed);
        if let Some((entry, tick)) = tree.log.entries.get(place) {
            entry.store(run, Relaxed);
            tick.store(tree.clock.load(Relaxed) + place as u64 + 1, Relaxed);
            return run;
        }
        tree.drain();
    }
}

const WAYS: [(&str, Match); 4] = [
    ("nothing (the floor)", nothing),
    ("last access up the whole path", whole_path),
    ("a mark where it ended", mark_at_the_end),
    ("a line in a log of 64", logged),
];

/// 32 tokens each, one below the other.
fn nested() -> (Tree, Vec<Vec<u32>>) {
    let mut tree = Tree::new();
    let mut random = Random(11);
    let key: Vec<u32> = (0..64 * 32).map(|_| random.token()).collect();
    key.chunks(32).fold(0, |parent, tokens| tree.add(parent, tokens));
    (tree, vec![key])
}

/// A prompt of 2,048 tokens with 1,000 ends of 256.
fn shared_prompt() -> (Tree, Vec<Vec<u32>>) {
    let mut tree = Tree::new();
    let mut random = Random(12);
    let prompt: Vec<u32> = (0..2_048).map(|_| random.token()).collect();
    let parent = tree.add(0, &prompt);
    let keys = (0..1_000).map(|end| {
        let mut key = prompt.clone();
        key.push(end);
        key.extend((1..256).map(|_| random.token()));
        tree.add(parent, &key[2_048..]);
        key
    });
    let keys = keys.collect();
    (tree, keys)
}

/// What is known in the end of the last access of each run: its own or that of any below.
fn last_accesses(tree: &Tree) -> Vec<u64> {
    tree.drain();
    let mut last: Vec<u64> = tree.runs.iter().map(|run| run.last.load(Relaxed)).collect();
    for id in (1..tree.runs.len()).rev() {
        last[id] = last[id].max(tree.marks[tree.runs[id].mark as usize].load(Relaxed));
        let parent = tree.runs[id].parent as usize;
        last[parent] = last[parent].max(last[id]);
    }
    last.split_off(1)
}

fn check(work: fn() -> (Tree, Vec<Vec<u32>>)) {
    let answers = WAYS[1..].iter().map(|(_, way)| {
        let (tree, keys) = work();
        for key in keys.iter().take(LOG) {
            way(&tree, key);
        }
        last_accesses(&tree)
    });
    let answers: Vec<_> = answers.collect();
    assert!(answers[0].iter().any(|&last| last > 0) && answers.iter().all(|answer| *answer == answers[0]));
}

/// What `iterations` matches cost each of `threads` threads that start together, on average: the CPU time, in which
/// waiting for a cache line of the other counts, and waiting for a core does not.
fn side_by_side(tree: &Tree, keys: &[Vec<u32>], way: Match, threads: u32, iterations: u64) -> Duration {
    let barrier = Barrier::new(threads as usize);
    let sum: Duration = std::thread::scope(|scope| {
        let start = |thread: u32| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                let start = CpuTime::now();
                let mut turn = thread as usize * keys.len() / threads as usize;
                for _ in 0..iterations {
                    turn = if turn + 1 >= keys.len() { 0 } else { turn + 1 };
                    way(black_box(tree), black_box(&keys[turn]));
                }
                CpuTime::now() - start
            })
        };
        let threads: Vec<_> = (0..threads).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a match does not panic")).sum()
    });
    sum / threads
}

fn touches(criterion: &mut Criterion) {
    common::noise(criterion, "touches");
    for (label, work) in [("64 nested runs", nested as fn() -> _), ("2K prompt + 256", shared_prompt)] {
        check(work);
        let (tree, keys) = work();
        for (name, way) in WAYS {
            let mut turn = 0;
            criterion.benchmark_group("touches, one thread").bench_function(BenchmarkId::new(name, label), |bencher| {
                bencher.iter(|| {
                    turn = if turn + 1 >= keys.len() { 0 } else { turn + 1 };
                    way(black_box(&tree), black_box(&keys[turn]))
                });
            });
        }
        for (name, way) in WAYS {
            criterion
                .benchmark_group("touches, two threads at once")
                .bench_function(BenchmarkId::new(name, label), |bencher| {
                    bencher.iter_custom(|iterations| side_by_side(&tree, &keys, way, 2, iterations))
                });
        }
    }
}

criterion_group! { name = benches; config = common::config(); targets = touches }
criterion_main!(benches);

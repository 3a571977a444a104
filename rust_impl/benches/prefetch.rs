//! Many keys at once over a tree beyond the L3 cache: one after the other, or in groups whose cache misses overlap.

#[path = "common/mod.rs"]
mod common;

use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;

use common::linear::Linear;
use common::{Criterion, Random};
use criterion::{BenchmarkId, Throughput, criterion_group, criterion_main};
use hashbrown::HashTable;

const KEYS: usize = 10_000;
const KEY_LEN: usize = 256;
const NIL: u32 = u32::MAX;
const LINE: usize = 64;

/// About as large as a run of the crate.
#[derive(Clone)]
struct Run {
    hash: u64,
    parent: u32,
    start: u32,
    at: usize,
    len: usize,
    _rest: [u64; 8],
}

/// Page size 1: the first token of a run tells it from its siblings.
struct Tree {
    hasher: foldhash::quality::RandomState,
    runs: Vec<Run>,
    tokens: Vec<u32>,
}

impl Tree {
    /// `groups` runs below the root (run 0), each with `ends` below it; a path has KEY_LEN tokens.
    fn new(groups: usize, ends: usize) -> Self {
        let root = Run { hash: 0, parent: NIL, start: 0, at: 0, len: 0, _rest: [0; 8] };
        let mut tree = Tree { hasher: Default::default(), runs: vec![root], tokens: Vec::new() };
        let lens = if ends == 0 { [KEY_LEN, 0] } else { [KEY_LEN / 2, KEY_LEN / 2] };
        let total = groups * (lens[0] + ends * lens[1]);
        let mut random = Random(8);
        tree.tokens.extend((0..total).map(|_| random.token()));
        // Runs of one path were made at different times.
        let mut places = random.shuffled(groups * (1 + ends)).into_iter();
        let unit = if ends == 0 { KEY_LEN } else { KEY_LEN / 2 };
        let mut add = |tree: &mut Tree, parent: u32, first: usize, start: usize| {
            let at = places.next().unwrap_or_else(|| unreachable!("a place for each run")) * unit;
            tree.tokens[at] = first as u32;
            let hash = tree.hash(parent, first as u32);
            tree.runs.push(Run { hash, parent, start: start as u32, at, len: unit, _rest: [0; 8] });
            tree.runs.len() as u32 - 1
        };
        let parents: Vec<u32> = (0..groups).map(|first| add(&mut tree, 0, first, 0)).collect();
        for first in 0..ends {
            for &parent in &parents {
                add(&mut tree, parent, first, unit);
            }
        }
        tree
    }

    fn hash(&self, parent: u32, first: u32) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(u64::from(parent) << 32 | u64::from(first));
        hasher.finish()
    }

    fn stored(&self, run: &Run) -> &[u32] {
        &self.tokens[run.at..run.at + run.len]
    }

    /// Keys that are cached whole; each eighth leaves the tree somewhere.
    fn keys(&self) -> Vec<u32> {
        let mut random = Random(9);
        let mut keys = Vec::with_capacity(KEYS * KEY_LEN);
        let reaches_end = |run: &Run| run.start as usize + run.len == KEY_LEN;
        let leaves = self.runs.iter().position(reaches_end).unwrap_or_else(|| unreachable!("a tree has leaves"));
        for number in 0..KEYS {
            let mut id = leaves + random.below(self.runs.len() - leaves);
            let end = keys.len() + KEY_LEN;
            keys.resize(end, 0);
            while id != 0 {
                let run = &self.runs[id];
                let from = end - KEY_LEN + run.start as usize;
                keys[from..from + run.len].copy_from_slice(self.stored(run));
                id = run.parent as usize;
            }
            if number % 8 == 0 {
                keys[end - KEY_LEN + random.below(KEY_LEN)] = NIL;
            }
        }
        keys
    }

    /// How much of `key`, which goes on at `depth`, the run shares.
    fn common(&self, id: u32, key: &[u32]) -> usize {
        let stored = self.stored(&self.runs[id as usize]);
        if key[..stored.len()] == *stored {
            return stored.len();
        }
        key.iter().zip(stored).take_while(|(a, b)| a == b).count()
    }

    fn is_child(&self, id: u32, parent: u32, first: u32) -> bool {
        let run = &self.runs[id as usize];
        run.parent == parent && self.tokens[run.at] == first
    }
}

/// The child table. `likely` may name a run with the same hash that is not the child.
trait Table {
    fn prefetch(&self, hash: u64);
    fn likely(&self, tree: &Tree, hash: u64) -> u32;
    fn child(&self, tree: &Tree, hash: u64, parent: u32, first: u32) -> u32;
}

/// hashbrown with ids alone: to tell a hash from another, the run is read.
struct Ids(HashTable<u32>);

impl Ids {
    fn new(tree: &Tree) -> Self {
        let mut table = HashTable::new();
        for id in 1..tree.runs.len() as u32 {
            table.insert_unique(tree.runs[id as usize].hash, id, |&id| tree.runs[id as usize].hash);
        }
        Ids(table)
    }
}

impl Table for Ids {
    fn prefetch(&self, _: u64) {}

    fn likely(&self, tree: &Tree, hash: u64) -> u32 {
        self.0.find(hash, |&id| tree.runs[id as usize].hash == hash).copied().unwrap_or(NIL)
    }

    fn child(&self, tree: &Tree, hash: u64, parent: u32, first: u32) -> u32 {
        let is_it = |&id: &u32| tree.runs[id as usize].hash == hash && tree.is_child(id, parent, first);
        self.0.find(hash, is_it).copied().unwrap_or(NIL)
    }
}

fn linear(tree: &Tree) -> Linear {
    Linear::new(tree.runs.len(), (1..tree.runs.len()).map(|id| (tree.runs[id].hash, id as u32)))
}

/// hashbrown with the upper half of the hash beside the id.
struct Halves(HashTable<(u32, u32)>);

impl Halves {
    fn new(tree: &Tree) -> Self {
        let mut table = HashTable::new();
        for id in 1..tree.runs.len() as u32 {
            let hash = tree.runs[id as usize].hash;
            table.insert_unique(hash, ((hash >> 32) as u32, id), |&(_, id)| tree.runs[id as usize].hash);
        }
        Halves(table)
    }
}

impl Table for Halves {
    fn prefetch(&self, _: u64) {}

    fn likely(&self, _: &Tree, hash: u64) -> u32 {
        self.0.find(hash, |&(upper, _)| upper == (hash >> 32) as u32).map_or(NIL, |&(_, id)| id)
    }

    fn child(&self, tree: &Tree, hash: u64, parent: u32, first: u32) -> u32 {
        let is_it = |&(upper, id): &(u32, u32)| upper == (hash >> 32) as u32 && tree.is_child(id, parent, first);
        self.0.find(hash, is_it).map_or(NIL, |&(_, id)| id)
    }
}

impl Table for Linear {
    fn prefetch(&self, hash: u64) {
        prefetch(self.word(hash));
    }

    fn likely(&self, _: &Tree, hash: u64) -> u32 {
        self.find(hash, |_| true)
    }

    fn child(&self, tree: &Tree, hash: u64, parent: u32, first: u32) -> u32 {
        self.find(hash, |id| tree.is_child(id, parent, first))
    }
}

fn prefetch<T>(_place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(_place).cast());
    }
}

fn one_by_one(tree: &Tree, table: &impl Table, keys: &[u32], depths: &mut [usize]) {
    for (key, depth) in keys.as_chunks::<KEY_LEN>().0.iter().zip(depths) {
        let mut run = 0;
        *depth = 0;
        while *depth < KEY_LEN {
            let first = key[*depth];
            run = table.child(tree, tree.hash(run, first), run, first);
            if run == NIL {
                break;
            }
            *depth += tree.common(run, &key[*depth..]);
            let here = &tree.runs[run as usize];
            if *depth < here.start as usize + here.len {
                break;
            }
        }
    }
}

/// A key on its way.
#[derive(Clone, Copy, Default)]
struct Walk {
    key: usize,
    run: u32,
    hash: u64,
    likely: u32,
}

/// All keys of a group take each step before any takes the next one, which finds in the cache what this one asked for.
fn in_groups<const GROUP: usize>(tree: &Tree, table: &impl Table, keys: &[u32], depths: &mut [usize]) {
    let keys = keys.as_chunks::<KEY_LEN>().0;
    let mut walks = [Walk::default(); GROUP];
    for from in (0..keys.len()).step_by(GROUP) {
        let mut active = GROUP.min(keys.len() - from);
        for (at, walk) in walks[..active].iter_mut().enumerate() {
            *walk = Walk { key: from + at, ..Walk::default() };
            depths[walk.key] = 0;
        }
        while active > 0 {
            for walk in &mut walks[..active] {
                walk.hash = tree.hash(walk.run, keys[walk.key][depths[walk.key]]);
                table.prefetch(walk.hash);
            }
            for walk in &mut walks[..active] {
                walk.likely = table.likely(tree, walk.hash);
                if let Some(run) = tree.runs.get(walk.likely as usize) {
                    prefetch(&run.hash);
                    prefetch(&run._rest[7]);
                }
            }
            for walk in &walks[..active] {
                if let Some(run) = tree.runs.get(walk.likely as usize) {
                    tree.stored(run).chunks(LINE / size_of::<u32>()).for_each(|line| prefetch(&line[0]));
                }
            }
            let mut going_on = 0;
            for at in 0..active {
                let mut walk = walks[at];
                let depth = &mut depths[walk.key];
                let key = &keys[walk.key][*depth..];
                let is_it = walk.likely != NIL && tree.is_child(walk.likely, walk.run, key[0]);
                let child = if is_it { walk.likely } else { table.child(tree, walk.hash, walk.run, key[0]) };
                if child == NIL {
                    continue;
                }
                *depth += tree.common(child, key);
                let run = &tree.runs[child as usize];
                if *depth == run.start as usize + run.len && *depth < KEY_LEN {
                    walk.run = child;
                    walks[going_on] = walk;
                    going_on += 1;
                }
            }
            active = going_on;
        }
    }
}

fn measure(criterion: &mut Criterion, work: &str, tree: &Tree) {
    type Way<'a> = (&'a str, Box<dyn Fn(&[u32], &mut [usize]) + 'a>);
    let (ids, halves, linear) = (Ids::new(tree), Halves::new(tree), linear(tree));
    let ways: [Way; 10] = [
        ("table of ids, one by one", Box::new(|k, d| one_by_one(tree, &ids, k, d))),
        ("table of (half hash, id), one by one", Box::new(|k, d| one_by_one(tree, &halves, k, d))),
        ("linear probing, one by one", Box::new(|k, d| one_by_one(tree, &linear, k, d))),
        ("table of ids, groups of 16", Box::new(|k, d| in_groups::<16>(tree, &ids, k, d))),
        ("table of (half hash, id), groups of 16", Box::new(|k, d| in_groups::<16>(tree, &halves, k, d))),
        ("linear probing, groups of 4", Box::new(|k, d| in_groups::<4>(tree, &linear, k, d))),
        ("linear probing, groups of 8", Box::new(|k, d| in_groups::<8>(tree, &linear, k, d))),
        ("linear probing, groups of 16", Box::new(|k, d| in_groups::<16>(tree, &linear, k, d))),
        ("linear probing, groups of 32", Box::new(|k, d| in_groups::<32>(tree, &linear, k, d))),
        ("linear probing, groups of 64", Box::new(|k, d| in_groups::<64>(tree, &linear, k, d))),
    ];
    let keys = tree.keys();
    let (mut expected, mut depths) = (vec![0; KEYS], vec![0; KEYS]);
    ways[0].1(&keys, &mut expected);
    assert!(expected.iter().filter(|&&depth| depth == KEY_LEN).count() >= KEYS * 7 / 8, "most keys are cached");
    let mut group = criterion.benchmark_group("prefetch, 10,000 keys of 256 tokens, a key");
    group.throughput(Throughput::Elements(KEYS as u64));
    for (name, way) in ways {
        depths.fill(usize::MAX);
        way(&keys, &mut depths);
        assert_eq!(depths, expected, "{name}");
        group.bench_function(BenchmarkId::new(name, work), |bencher| {
            bencher.iter(|| way(black_box(&keys), &mut depths));
        });
    }
    group.finish();
}

fn batches(criterion: &mut Criterion) {
    common::noise(criterion, "prefetch");
    let groups = |full| common::size(full, 10);
    measure(criterion, "1 run, of 200,000 (220 MB)", &Tree::new(groups(200_000), 0));
    measure(criterion, "2 runs, of 202,000 (120 MB)", &Tree::new(groups(2_000), 100));
    measure(criterion, "2 runs, of 420 (in L2)", &Tree::new(20, 20));
}

criterion_group! { name = benches; config = common::config(); targets = batches }
criterion_main!(benches);

//! Child lookup: one table for the tree or a map a node, which hash, and whether it is kept with the run.

#[path = "../common/mod.rs"]
mod common;
mod hashes;
mod lookups;

use std::hint::black_box;

use common::{Criterion, Random};
use criterion::{BatchSize, BenchmarkId, Throughput, criterion_group, criterion_main};
use hashes::{FoldFast, FoldQuality, FoldWritten, PageHash, Sip};
use lookups::{Lookup, Tree};

const PAGES: [usize; 3] = [1, 16, 64];
/// Look-ups that are repeated in turn; their keys lie one after the other, so that only the tree is out of the cache.
const TURNS: usize = 1 << 14;

/// A tree of 50,000 runs below `parents` of them, and pages to look up, each with its answer.
struct Work {
    tree: Tree,
    parents: Vec<u32>,
    keys: Vec<u32>,
    answers: Vec<Option<u32>>,
}

impl Work {
    /// `asked`: only the children of so many parents are looked up. `missing`: pages that are not there.
    fn new(page: usize, parents: usize, asked: usize, missing: bool) -> Self {
        let tree = Tree::new(page, parents, 50_000);
        let mut random = Random(6);
        let each = tree.runs.len() / parents;
        let mut work = Work { tree, parents: Vec::new(), keys: Vec::new(), answers: Vec::new() };
        for _ in 0..TURNS {
            let id = (random.below(asked) * each + random.below(each)) as u32;
            work.parents.push(work.tree.runs[id as usize].parent);
            work.keys.extend_from_slice(work.tree.page(id));
            if missing {
                // Only the last token tells that the page is none of them.
                *work.keys.last_mut().unwrap() += 1 << 20;
            }
            work.answers.push(if missing { None } else { Some(id) });
        }
        work
    }

    fn measure(&self, criterion: &mut Criterion, group: &str, name: &str, lookup: &Lookup) {
        let page = self.tree.page;
        let find = |turn: usize| lookup(&self.tree, self.parents[turn], &self.keys[turn * page..(turn + 1) * page]);
        (0..TURNS).for_each(|turn| assert_eq!(find(turn), self.answers[turn], "{name}"));
        let mut turn = 0;
        criterion.benchmark_group(group).bench_function(BenchmarkId::new(name, page), |bencher| {
            bencher.iter(|| {
                turn = (turn + 1) % TURNS;
                find(black_box(turn))
            });
        });
    }
}

fn lookup(criterion: &mut Criterion) {
    let groups = [
        ("children, 2 of one parent", 25_000, 1, false),
        ("children, 2 of each of 25,000 parents", 25_000, 25_000, false),
        ("children, 50,000 of one parent", 1, 1, false),
        ("children, 50,000 of one parent, page missing", 1, 1, true),
    ];
    for (group, parents, asked, missing) in groups {
        for page in PAGES {
            let work = Work::new(page, parents, asked, missing);
            for (name, make) in lookups::WAYS {
                work.measure(criterion, group, name, &make(&work.tree));
            }
            for (name, make) in lookups::SIBLINGS.iter().filter(|_| parents > 1) {
                work.measure(criterion, group, name, &make(&work.tree));
            }
        }
    }
}

fn hash<H: PageHash>(criterion: &mut Criterion, hasher: &H) {
    let mut group = criterion.benchmark_group("children, hash of a first page");
    for page in PAGES {
        let tokens: Vec<u32> = (0..page as u32).collect();
        group.bench_function(BenchmarkId::new(H::NAME, page), |bencher| {
            bencher.iter(|| hasher.hash(black_box(7), black_box(&tokens)));
        });
    }
    group.finish();
}

/// What a kept hash saves: taking runs out of the table, putting them back, and letting it grow.
fn kept_or_computed(criterion: &mut Criterion) {
    let kept = |tree: &Tree, id: u32| tree.runs[id as usize].hash;
    let computed = |tree: &Tree, id: u32| tree.hasher.hash(tree.runs[id as usize].parent, tree.page(id));
    relink(criterion, "hash kept with the run", kept);
    relink(criterion, "hash computed again", computed);
}

fn relink(criterion: &mut Criterion, name: &str, hash: impl Fn(&Tree, u32) -> u64) {
    for page in PAGES {
        let tree = Tree::new(page, 1, 50_000);
        let ids = Random(7).shuffled(tree.runs.len());
        let mut table = tree.table();
        assert!(ids.iter().all(|&id| hash(&tree, id as u32) == tree.runs[id].hash));
        let mut turn = 0;
        criterion.benchmark_group("children, a run out of the table and in again").bench_function(
            BenchmarkId::new(name, page),
            |bencher| {
                bencher.iter(|| {
                    turn = (turn + 1) % ids.len();
                    let id = ids[turn] as u32;
                    let Ok(entry) = table.find_entry(hash(&tree, id), |&other| other == id) else { unreachable!() };
                    entry.remove();
                    table.insert_unique(hash(&tree, id), id, |&id| hash(&tree, id));
                });
            },
        );
        let mut group = criterion.benchmark_group("children, a table of 50,000 doubles its room, a run");
        group.throughput(Throughput::Elements(ids.len() as u64));
        group.bench_function(BenchmarkId::new(name, page), |bencher| {
            let grow = |mut table: hashbrown::HashTable<u32>| {
                table.reserve(table.capacity() + 1, |&id| hash(&tree, id));
                table
            };
            bencher.iter_batched(|| table.clone(), grow, BatchSize::LargeInput);
        });
        group.finish();
    }
}

fn children(criterion: &mut Criterion) {
    common::noise(criterion, "children");
    lookup(criterion);
    hash(criterion, &Sip::default());
    hash(criterion, &FoldQuality::default());
    hash(criterion, &FoldWritten::default());
    hash(criterion, &FoldFast::default());
    kept_or_computed(criterion);
}

criterion_group! { name = benches; config = common::config(); targets = children }
criterion_main!(benches);

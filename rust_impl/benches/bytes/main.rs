//! What the alternatives take in memory, as the allocator sees it. Nothing is timed.
//!
//! Each figure is printed and, if CRITERION_HOME is set, kept there in the form of criterion's estimates, so that one
//! script makes all tables.

// What other benchmarks time is made here, and not used.
#![allow(dead_code)]

#[path = "../common/mod.rs"]
mod common;
mod counting;
#[path = "../slots/forms.rs"]
mod forms;
#[path = "../children/hashes.rs"]
mod hashes;
#[path = "../children/lookups.rs"]
mod lookups;
#[path = "../arena/nodes.rs"]
mod nodes;
#[path = "../arena/spans.rs"]
mod spans;

use std::path::Path;
use std::time::Duration;

use nodes::{Boxed, Counted, Forest, LEVELS, Slabbed};
use spans::{Blocks, Generations, SLOTS_OF_A_LEAF, Store, Vecs};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// No node, no generation.
const NIL: u32 = u32::MAX;

/// The bytes that stay alive of what `make` asks for, divided by `each`.
fn count<T>(group: &str, row: &str, column: &str, each: usize, make: impl FnOnce() -> T) {
    let before = counting::alive();
    let made = make();
    let bytes = (counting::alive() - before) as f64 / each as f64;
    drop(made);
    println!("{group}/{row}/{column}: {bytes:.3}");
    // The table stands in the order of writing, and the times of files are coarse.
    std::thread::sleep(Duration::from_millis(10));
    if let Some(home) = std::env::var_os("CRITERION_HOME") {
        let folder = Path::new(&home).join(group).join(row).join(column).join("new");
        let kept = keep(&folder, &[group, row, column], bytes);
        kept.unwrap_or_else(|error| panic!("{} cannot be written: {error}", folder.display()));
    }
}

fn keep(folder: &Path, [group, row, column]: &[&str; 3], value: f64) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let names = format!(r#"{{"group_id":"{group}","function_id":"{row}","value_str":"{column}","throughput":null}}"#);
    std::fs::write(folder.join("benchmark.json"), names)?;
    let interval = format!(r#"{{"confidence_level":1.0,"lower_bound":{value},"upper_bound":{value}}}"#);
    let median = format!(r#"{{"median":{{"point_estimate":{value},"confidence_interval":{interval}}}}}"#);
    std::fs::write(folder.join("estimates.json"), median)
}

fn nodes<F: Forest>(nodes: usize) {
    let chains = nodes / LEVELS;
    count("memory, bytes a node", F::NAME, "200,000 nodes", chains * LEVELS, || F::new(chains));
}

fn leaves<S: Store>(leaves: usize) {
    // Slots that take 8 bytes, as in the alternatives.
    let (tokens, slots) = ([7; SLOTS_OF_A_LEAF], [7 << 32; SLOTS_OF_A_LEAF]);
    count("memory, bytes a leaf", S::NAME, "200,000 leaves of 16 tokens", leaves, || {
        let mut store = S::default();
        (0..leaves).for_each(|_| store.push(&tokens, &slots));
        store
    });
}

fn children(column: &str, parents: usize) {
    let tree = lookups::Tree::new(16, parents, 50_000);
    for (name, make) in [lookups::WAYS[1], lookups::WAYS[3], lookups::WAYS[4], lookups::WAYS[7]] {
        count("memory, bytes a child, page size 16", name, column, tree.runs.len(), || make(&tree));
    }
}

fn slots(column: &str, page: usize) {
    let (group, slots) = ("memory, bytes a slot, of 8K", forms::paged(page));
    count(group, "int64", column, slots.len(), || slots.clone());
    count(group, "u32", column, slots.len(), || vec![0_u32; slots.len()]);
    count(group, "runs of consecutive slots", column, slots.len(), || {
        let mut runs = Vec::new();
        forms::runs(&slots, &mut runs);
        runs.into_boxed_slice()
    });
}

fn main() {
    let many = common::size(200_000, 2_000);
    nodes::<Slabbed>(many);
    nodes::<Boxed>(many);
    nodes::<Counted>(many);
    leaves::<Generations>(many);
    leaves::<Blocks>(many);
    leaves::<Vecs>(many);
    children("50,000 of one parent", 1);
    children("2 of each of 25,000 parents", 25_000);
    slots("one run", forms::UNITS);
    slots("pages of 64", 64);
    slots("pages of 16", 16);
    slots("single slots", 1);
}

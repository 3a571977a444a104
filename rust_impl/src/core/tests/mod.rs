//! The tree against a naive page trie, on random calls. A failure names its seed, which replays it.

mod lockstep;
mod page_trie;

use super::{Config, Insertion, Limits, Policy, Request, Tree};
use lockstep::Lockstep;

const POLICIES: [Policy; 7] =
    [Policy::Lru, Policy::Lfu, Policy::Fifo, Policy::Mru, Policy::Filo, Policy::Priority, Policy::Slru];

fn config(seed: u64) -> Config {
    let choose = |shift: u32, from: u64| (seed >> shift) % from;
    Config {
        page_size: [1, 2, 16][(seed % 3) as usize],
        policy: POLICIES[(seed % 7) as usize],
        bigram: choose(2, 2) == 1,
        slru_threshold: 1 + choose(3, 3) as i64,
        events: choose(1, 2) == 1,
        limits: match choose(4, 3) {
            0 => Limits::default(),
            1 => Limits { marks: 2, merged_marks: 2, generation: 256 },
            _ => Limits { marks: 4, merged_marks: 3, generation: 2048 },
        },
    }
}

#[test]
fn agrees_with_a_page_trie() {
    let only = std::env::var("TRIRADIX_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in only.map_or(0..600, |seed: u64| seed..seed + 1) {
        println!("seed {seed}: {:?}", config(seed));
        Lockstep::new(seed, config(seed)).run(150);
    }
}

#[test]
fn agrees_with_a_page_trie_over_long_runs() {
    for seed in 1_000..1_021 {
        println!("seed {seed}: {:?}", config(seed));
        Lockstep::new(seed, config(seed)).run(1_500);
    }
}

/// A path that was matched up to each of its pages is one run again after one match of all of it.
#[test]
fn reads_do_not_bloat() {
    let config = Config {
        page_size: 1,
        policy: Policy::Lru,
        bigram: false,
        slru_threshold: 2,
        events: false,
        limits: Limits::default(),
    };
    let mut tree = Tree::new(config);
    let tokens: Vec<u32> = (0..2_000).collect();
    let slots: Vec<i64> = (0..2_000).collect();
    let request = |length: usize| Request { tokens: &tokens[..length], namespace: None, start: None };
    tree.insert(Insertion { request: request(2_000), slots: &slots, priority: 0, inserted_len: 0 }).unwrap();
    let fresh = tree.stats();
    let read = |tree: &mut Tree, length: usize| {
        tree.match_prefix(request(length)).unwrap();
        tree.drain_touches().unwrap();
    };
    (1..=2_000).rev().for_each(|length| read(&mut tree, length));
    tree.check().unwrap();
    let bloated = tree.stats();
    assert!(bloated.memory_bytes - fresh.memory_bytes <= 64 * 2_000 * 2, "{} bytes", bloated.memory_bytes);
    read(&mut tree, 2_000);
    tree.check().unwrap();
    assert_eq!(tree.stats().nodes, fresh.nodes);
}

/// The core is to stay free of Python.
#[test]
fn knows_no_python() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core");
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("pyo3") && !text.contains("numpy"), "{} knows Python", file.display());
    }
}

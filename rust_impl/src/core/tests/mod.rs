//! The tree against a naive page trie, on random calls; and what nothing else would notice.
//!
//! A failure is made as small as can be and printed, and `proptest-regressions` keeps it for the next run.
//! PROPTEST_CASES=N asks for fewer or more of them.

#[allow(unsafe_code)]
mod allocations;
#[allow(unsafe_code)]
mod lockstep;
mod obligations;
mod operations;
mod page_trie;

use proptest::prelude::*;

use super::{Config, Failure, Handle, Insertion, Key, Limits, Policy, Request, Tree};
use lockstep::Lockstep;
use operations::story;

fn plain() -> Config {
    let limits = Limits::default();
    Config { page_size: 1, policy: Policy::Lru, bigram: false, slru_threshold: 2, events: false, limits }
}

/// Steps of a story: Miri takes a second for a few of them.
const STEPS: usize = if cfg!(miri) { 30 } else { 150 };

/// So many cases, unless the environment says how many.
fn cases(usual: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { config.cases } else { usual };
    ProptestConfig { cases, ..config }
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn agrees_with_a_page_trie((config, steps) in story(STEPS)) {
        Lockstep::new(config).run(steps);
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    #[cfg_attr(miri, ignore = "takes hours")]
    fn agrees_with_a_page_trie_over_long_runs((config, steps) in story(1_500)) {
        Lockstep::new(config).run(steps);
    }
}

proptest! {
    #![proptest_config(cases(600))]

    /// Each call, at each of its allocations.
    #[test]
    fn changes_nothing_where_memory_runs_out((config, steps) in story(STEPS / 2)) {
        Lockstep::starved(config).run(steps);
    }
}

/// A path that was matched up to each of its pages is one run again after one match of all of it.
#[test]
#[cfg_attr(miri, ignore = "takes hours")]
fn reads_do_not_bloat() {
    let mut tree = Tree::new(plain());
    let tokens: Vec<u32> = (0..2_000).collect();
    let slots: Vec<i64> = (0..2_000).collect();
    let request =
        |length: usize| Request { key: Key::Narrow(&tokens[..length]), namespace: None, start: None, known: None };
    tree.insert(&Insertion { request: request(2_000), slots: &slots, priority: 0, inserted_len: 0 }).unwrap();
    let fresh = tree.stats();
    let read = |tree: &mut Tree, length: usize| {
        tree.match_prefix_alone(request(length), &mut Handle::nowhere()).unwrap();
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

/// Every way to compare finds the same position, whatever stands behind it.
#[test]
fn compares_to_the_position() {
    let stored: Vec<u32> = (0..300u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let wide: Vec<i64> = stored.iter().map(|&token| i64::from(token)).collect();
    for length in (0..=300).step_by(7).chain([1, 15, 16, 17, 63, 64, 65, 127, 128, 129]) {
        // Under Miri not each of them.
        for position in (0..=length).step_by(if cfg!(miri) { 41 } else { 1 }) {
            let (mut narrow, mut wide) = (stored[..length].to_vec(), wide[..length].to_vec());
            if position < length {
                narrow[position] ^= 1 << (position % 32);
                wide[position] ^= 1 << (position % 64);
            }
            assert_eq!(Key::Narrow(&narrow).common(&stored), position);
            assert_eq!(Key::Wide(&wide).common(&stored), position);
            assert_eq!(super::compare::common_anywhere(&narrow, &stored[..length]), position);
            assert_eq!(super::compare::common_wide_anywhere(&wide, &stored[..length]), position);
            let outside = (position < length && position % 64 >= 32).then_some(position);
            assert_eq!(Key::Wide(&wide).first_outside(), outside);
        }
    }
}

/// A bad number is refused, wherever it stands, and nothing has changed.
#[test]
fn refuses_what_is_no_token() {
    let mut tree = Tree::new(plain());
    fn request(key: &[i64]) -> Request<'_> {
        Request { key: Key::Wide(key), namespace: None, start: None, known: None }
    }
    fn insertion(key: &[i64]) -> Insertion<'_> {
        Insertion { request: request(key), slots: &[0, 1, 2], priority: 0, inserted_len: 0 }
    }
    assert!(tree.insert(&insertion(&[7, 8, 9])).is_ok());
    for (key, position) in [([7, 8, -1], 2), ([7, 1 << 32, 9], 1), ([-7, 8, 9], 0)] {
        let refusal = Some(Failure::Outside { position });
        assert_eq!(tree.match_prefix(request(&key)).err(), refusal);
        assert_eq!(tree.peek_prefix(request(&key)).err(), refusal);
        assert_eq!(tree.insert(&insertion(&key)).err(), refusal);
        assert_eq!(tree.stats().lookups, 0);
        tree.check().unwrap();
    }
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

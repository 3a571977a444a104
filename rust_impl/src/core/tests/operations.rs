//! What a test may ask of the tree: random calls that can be made fewer and smaller, and the shapes of trees.
//!
//! What a call works on is an index into what there is by then, so every list of calls makes sense.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::core::{Config, Limits, Policy};

/// Few, so that keys share much; the last one is the largest there is.
pub const ALPHABET: [u32; 3] = [0, 1, u32::MAX];
pub const SPACES: usize = 3;

/// Slot i of a call is `from + i * apart`, and `jump` further after each eight.
#[derive(Debug, Clone, Copy)]
pub struct Numbering {
    pub from: i64,
    pub apart: i64,
    pub jump: i64,
}

#[derive(Debug, Clone)]
pub enum Call {
    Insert {
        path: Path,
        name_given: bool,
        numbering: Numbering,
        priority: i64,
        inserted_len: usize,
    },
    Match(Path),
    MatchMany(Vec<Path>),
    Peek(Path),
    /// A key that was found before, with something behind it: the tree is told where that was.
    MatchFound {
        found: Index,
        more: Vec<u32>,
    },
    Lock(Index),
    Unlock(Index),
    Evict {
        units: usize,
        space: Option<usize>,
    },
    LookAtNodes {
        from: usize,
    },
    Reset,
}

/// The key of a call, and where it begins.
#[derive(Debug, Clone)]
pub struct Path {
    pub space: usize,
    /// A node, and whether a key of bigrams below it begins as it must.
    pub start: Option<(Index, bool)>,
    /// Keys grow out of each other, so that they share, branch and nest.
    pub origin: Index,
    pub cut: Option<Index>,
    pub more: Vec<u32>,
    /// Whether the numbers have 64 bits.
    pub wide: bool,
}

/// A call, and whether the touch log is emptied after it.
pub type Step = (Call, bool);

fn tokens(config: Config) -> impl Strategy<Value = Vec<u32>> {
    // Long pages are seldom equal where many tokens are to be had.
    let alphabet = if config.page_size == 16 { &ALPHABET[..2] } else { &ALPHABET[..] };
    vec(select(alphabet), 0..4 * config.page_size + 4)
}

fn path(config: Config) -> impl Strategy<Value = Path> {
    let start = prop::option::weighted(0.33, (any::<Index>(), prop::bool::weighted(0.95)));
    let cut = prop::option::weighted(0.25, any::<Index>());
    (0..SPACES, start, any::<Index>(), cut, tokens(config), any::<bool>())
        .prop_map(|(space, start, origin, cut, more, wide)| Path { space, start, origin, cut, more, wide })
}

fn call(config: Config) -> impl Strategy<Value = Call> {
    // Now and then slots that do not fit into 32 bits; consecutive, apart, or consecutive for some units.
    let numbering = (select(&[0, 0, -1 << 40, 1 << 33][..]), select(&[(1, 0), (1, 0), (3, 0), (1, 5)][..]))
        .prop_map(|(from, (apart, jump))| Numbering { from, apart, jump });
    let inserted_len = prop_oneof![Just(0), 0..60usize];
    let insert = (path(config), any::<bool>(), numbering, -2..3i64, inserted_len).prop_map(
        |(path, name_given, numbering, priority, inserted_len)| Call::Insert {
            path,
            name_given,
            numbering,
            priority,
            inserted_len,
        },
    );
    let evict = (0..12 * config.page_size, prop::option::weighted(0.33, 0..SPACES));
    let found = (any::<Index>(), tokens(config));
    prop_oneof![
        280 => insert,
        70 => path(config).prop_map(Call::Match),
        10 => vec(path(config), 0..100).prop_map(Call::MatchMany),
        50 => path(config).prop_map(Call::Peek),
        40 => found.prop_map(|(found, more)| Call::MatchFound { found, more }),
        80 => any::<Index>().prop_map(Call::Lock),
        80 => any::<Index>().prop_map(Call::Unlock),
        159 => evict.prop_map(|(units, space)| Call::Evict { units, space }),
        40 => (0..10usize).prop_map(|from| Call::LookAtNodes { from }),
        1 => Just(Call::Reset),
    ]
}

/// Sizes that make the tree split, merge, move and give up early, and those of every day.
fn limits() -> impl Strategy<Value = Limits> {
    select(vec![
        Limits { marks: 2, merged_marks: 2, generation: 256 },
        Limits { marks: 4, merged_marks: 3, generation: 2048 },
        Limits::default(),
    ])
}

fn config() -> impl Strategy<Value = Config> {
    let policies = Policy::ALL.map(|(_, policy)| policy).to_vec();
    (select(&[1, 2, 3, 16][..]), select(policies), any::<bool>(), 1..4i64, any::<bool>(), limits()).prop_map(
        |(page_size, policy, bigram, slru_threshold, events, limits)| Config {
            page_size,
            policy,
            bigram,
            slru_threshold,
            events,
            limits,
        },
    )
}

/// A tree, and up to so many steps.
pub fn story(most: usize) -> impl Strategy<Value = (Config, Vec<Step>)> {
    config().prop_flat_map(move |config| (Just(config), vec((call(config), any::<bool>()), most / 2..=most)))
}

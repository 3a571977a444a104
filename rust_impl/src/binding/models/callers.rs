//! Callers of one tree beside each other: whatever they do to it, some order of their steps explains their answers.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as Plain};

use super::stories::{Answer, Cache, Call, Step, Story, Told, call};
use super::{expect_panics, explore, spawn};
use crate::sync::Mutex;
use Call::{Batch, Evict, Fail, Insert, Match, Path, Reset, Size};

/// Tells the story in every order, with a GIL and without; `also` looks at what was told.
fn tell(story: &'static Story, also: fn(&Told)) {
    for has_gil in [true, false] {
        // Many orders tell the same.
        let explained = Arc::new(Plain::new(HashSet::new()));
        let all = Arc::clone(&explained);
        explore(move || {
            let told = once(story, has_gil);
            if explained.lock().unwrap().insert(told.clone()) {
                assert!(story.explains(&told), "no order explains {told:#?}");
                also(&told);
            }
        });
        let told = all.lock().unwrap().len();
        println!("{told} outcomes {} a GIL", if has_gil { "with" } else { "without" });
        assert!(told > 1 || !cfg!(feature = "models"), "the threads do not meet");
    }
}

fn once(story: &'static Story, has_gil: bool) -> Told {
    let cache = Arc::new(Cache::new(story.before));
    let gil = has_gil.then(|| Arc::new(Mutex::new(())));
    let clock = Arc::new(AtomicUsize::new(0));
    let begin = |&calls: &&'static [Call]| {
        let (cache, gil, clock) = (Arc::clone(&cache), gil.clone(), Arc::clone(&clock));
        spawn(move || {
            let mut steps = Vec::new();
            for (number, &what) in calls.iter().enumerate() {
                let began = clock.fetch_add(1, Ordering::Relaxed);
                let answers = call(&cache, what, gil.as_deref());
                let ended = clock.fetch_add(1, Ordering::Relaxed);
                steps.extend(answers.into_iter().map(|answer| Step { call: number, answer, began, ended }));
            }
            steps
        })
    };
    let threads: Vec<_> = story.threads.iter().map(begin).collect();
    let threads = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    Told { threads, left: cache.end() }
}

fn nothing(_: &Told) {}

const ABCD: &[u32] = &[1, 2, 3, 4];
const AB: &[u32] = &[1, 2];
const ABX: &[u32] = &[1, 2, 9];
const E: &[u32] = &[5];
const FGH: &[u32] = &[6, 7, 8];

/// Two batches and a single match leave their notes: everything goes in the order of some order of them.
#[test]
fn notes_are_written_in_order() {
    static STORY: Story = Story {
        before: &[(ABCD, 10), (E, 20), (FGH, 30)],
        threads: &[&[Batch(&[E, AB])], &[Batch(&[FGH, E])], &[Match(ABCD)]],
    };
    tell(&STORY, nothing);
}

/// So many notes that somebody must write them, while the others go on.
#[test]
fn a_full_log_is_emptied() {
    static STORY: Story = Story {
        before: &[(ABCD, 10), (E, 20)],
        threads: &[&[Batch(&[E, AB, ABCD])], &[Match(E), Match(AB), Match(E)], &[Batch(&[AB, E])]],
    };
    tell(&STORY, nothing);
}

/// A run is split while others look up what it holds.
#[test]
fn a_split_beside_readers() {
    static STORY: Story =
        Story { before: &[(ABCD, 10)], threads: &[&[Insert(ABX, 20)], &[Batch(&[ABX, ABCD])], &[Path(0), Match(ABX)]] };
    tell(&STORY, nothing);
}

/// Pages go, and what held them holds others, while somebody asks for the slots of the old ones.
#[test]
fn evicted_and_used_again_beside_readers() {
    static STORY: Story = Story {
        before: &[(E, 20), (ABCD, 10)],
        threads: &[&[Evict(3), Insert(FGH, 30)], &[Batch(&[ABCD, FGH])], &[Path(1), Path(1)]],
    };
    tell(&STORY, |told| {
        for step in told.threads[2].iter() {
            assert!(matches!(&step.answer, Answer::Stale) || step.answer == Answer::Slots(vec![10, 11, 12, 13]));
        }
    });
}

#[test]
fn two_writers_and_a_batch() {
    static STORY: Story = Story {
        before: &[(ABCD, 10), (E, 20)],
        threads: &[&[Evict(2), Size], &[Insert(ABX, 30), Evict(1)], &[Batch(&[AB, E])]],
    };
    tell(&STORY, nothing);
}

#[test]
fn a_reset_beside_readers() {
    static STORY: Story = Story {
        before: &[(ABCD, 10)],
        threads: &[&[Reset, Insert(FGH, 30)], &[Batch(&[ABCD, FGH])], &[Path(0), Size]],
    };
    tell(&STORY, nothing);
}

/// After an internal error half-way nobody is answered from what it left, until the reset.
#[test]
fn an_internal_error_beside_others() {
    expect_panics("as asked for");
    static STORY: Story =
        Story { before: &[(ABCD, 10)], threads: &[&[Fail, Size], &[Batch(&[ABCD, E])], &[Match(AB)]] };
    tell(&STORY, |told| {
        assert_eq!([&told.threads[0][0].answer, &told.threads[0][1].answer], [&Answer::Broke, &Answer::Unusable]);
        assert_eq!(told.left, None);
        for step in told.threads[1].iter().chain(&told.threads[2]) {
            assert!(matches!(step.answer, Answer::Units(0 | 2 | 4) | Answer::Unusable));
        }
    });
}

#[test]
fn a_reset_after_an_internal_error() {
    expect_panics("as asked for");
    static STORY: Story =
        Story { before: &[(ABCD, 10)], threads: &[&[Fail], &[Batch(&[ABCD])], &[Reset, Insert(E, 20)]] };
    tell(&STORY, nothing);
}

/// The checker refuses what no order explains.
#[test]
fn wrong_answers_are_found() {
    static STORY: Story = Story { before: &[(E, 20)], threads: &[&[Insert(AB, 10)], &[Match(AB)]] };
    let told = |found: usize, left: &[i64], ended: usize| Told {
        threads: vec![
            vec![Step { call: 0, answer: Answer::Units(0), began: 0, ended }],
            vec![Step { call: 0, answer: Answer::Units(found), began: 2, ended: 3 }],
        ],
        left: Some(left.to_vec()),
    };
    explore(move || {
        assert!(STORY.explains(&told(0, &[20, 11, 10], 4)));
        assert!(STORY.explains(&told(2, &[20, 11, 10], 1)));
        for wrong in [told(0, &[20, 11, 10], 1), told(1, &[20, 11, 10], 4), told(2, &[11, 10, 20], 4)] {
            assert!(!STORY.explains(&wrong));
        }
    });
}

//! Slots as they are stored: consecutive ones as the first of them, others in 4 bytes each, or in 8 where one needs that.

use std::mem::MaybeUninit;

use super::compare::{are_consecutive, are_narrow, copy, narrow, widen};

/// How the slots of a span are stored.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Each is one more than the one before, as an allocator hands them out: only the first is kept.
    #[default]
    Consecutive,
    /// 32 bits without a sign.
    Narrow,
    Wide,
}

impl Form {
    pub const COUNT: usize = 3;

    /// The smallest that can keep them.
    pub fn of(slots: &[i64]) -> Self {
        if are_consecutive(slots) {
            Form::Consecutive
        } else if are_narrow(slots) {
            Form::Narrow
        } else {
            Form::Wide
        }
    }

    /// What each slot takes.
    pub const fn bytes(self) -> usize {
        match self {
            Form::Consecutive => 0,
            Form::Narrow => size_of::<u32>(),
            Form::Wide => size_of::<i64>(),
        }
    }
}

/// The slots of a window.
#[derive(Clone, Copy)]
pub enum Slots<'a> {
    Consecutive { first: i64, count: usize },
    Narrow(&'a [u32]),
    Wide(&'a [i64]),
}

/// `count` numbers from `first` on. (An int64 is what the caller says it is: after the largest comes the smallest.)
pub fn consecutive(first: i64, count: usize) -> impl ExactSizeIterator<Item = i64> + DoubleEndedIterator + Clone {
    (0..count).map(move |at| first.wrapping_add(at as i64))
}

impl<'a> Slots<'a> {
    pub const fn none() -> Self {
        Slots::Consecutive { first: 0, count: 0 }
    }

    pub const fn len(self) -> usize {
        match self {
            Slots::Consecutive { count, .. } => count,
            Slots::Narrow(slots) => slots.len(),
            Slots::Wide(slots) => slots.len(),
        }
    }

    pub fn part(self, range: std::ops::Range<usize>) -> Slots<'a> {
        match self {
            Slots::Consecutive { first, count } => {
                assert!(range.start <= range.end && range.end <= count, "a part lies inside");
                Slots::Consecutive { first: first.wrapping_add(range.start as i64), count: range.len() }
            }
            Slots::Narrow(slots) => Slots::Narrow(&slots[range]),
            Slots::Wide(slots) => Slots::Wide(&slots[range]),
        }
    }

    /// Whether none needs more than 32 bits.
    pub fn are_narrow(self) -> bool {
        match self {
            Slots::Consecutive { first, count } => {
                let last = first.wrapping_add(count.saturating_sub(1) as i64);
                (first as u64 | last as u64) >> 32 == 0 && first <= last
            }
            Slots::Narrow(_) => true,
            Slots::Wide(slots) => are_narrow(slots),
        }
    }

    /// Fills `to`, which is as long.
    pub fn copy_to(self, to: &mut [MaybeUninit<i64>]) {
        assert_eq!(self.len(), to.len());
        match self {
            Slots::Consecutive { first, count } => {
                to.iter_mut().zip(consecutive(first, count)).for_each(|(to, slot)| _ = to.write(slot));
            }
            Slots::Narrow(slots) => widen(slots, to),
            Slots::Wide(slots) => copy(slots, to),
        }
    }

    /// The same in 32 bits, of slots that fit.
    pub fn copy_narrow_to(self, to: &mut [MaybeUninit<u32>]) {
        assert_eq!(self.len(), to.len());
        match self {
            Slots::Consecutive { first, count } => {
                to.iter_mut().zip(consecutive(first, count)).for_each(|(to, slot)| _ = to.write(slot as u32));
            }
            Slots::Narrow(slots) => copy(slots, to),
            Slots::Wide(slots) => narrow(slots, to),
        }
    }

    pub fn append_to(self, to: &mut Vec<i64>) {
        match self {
            Slots::Consecutive { first, count } => to.extend(consecutive(first, count)),
            Slots::Narrow(slots) => to.extend(slots.iter().map(|&slot| i64::from(slot))),
            Slots::Wide(slots) => to.extend_from_slice(slots),
        }
    }

    /// The last page first, in token order within a page.
    pub fn append_pages_backwards(self, page: usize, to: &mut impl Extend<i64>) {
        match self {
            Slots::Consecutive { first, count } if page == 1 => to.extend(consecutive(first, count).rev()),
            Slots::Narrow(slots) if page == 1 => to.extend(slots.iter().rev().map(|&slot| i64::from(slot))),
            Slots::Wide(slots) if page == 1 => to.extend(slots.iter().rev().copied()),
            Slots::Consecutive { first, count } => {
                for start in (0..count).step_by(page).rev() {
                    to.extend(consecutive(first.wrapping_add(start as i64), page));
                }
            }
            Slots::Narrow(slots) => {
                for page in slots.rchunks_exact(page) {
                    to.extend(page.iter().map(|&slot| i64::from(slot)));
                }
            }
            Slots::Wide(slots) => slots.rchunks_exact(page).for_each(|page| to.extend(page.iter().copied())),
        }
    }
}

/// What the slots of windows that follow one another are together.
#[derive(Default)]
pub struct JoinedSlots {
    /// The first slot, while all are consecutive.
    first: Option<i64>,
    count: usize,
    scattered: bool,
    wide: bool,
}

impl JoinedSlots {
    pub fn add(&mut self, slots: Slots) {
        if let Slots::Consecutive { first, .. } = slots {
            let expected = *self.first.get_or_insert(first);
            self.scattered |= first != expected.wrapping_add(self.count as i64);
        } else {
            self.scattered = true;
        }
        self.wide |= !slots.are_narrow();
        self.count += slots.len();
    }

    pub const fn form(&self) -> Form {
        match (self.scattered, self.wide) {
            (false, _) => Form::Consecutive,
            (true, false) => Form::Narrow,
            (true, true) => Form::Wide,
        }
    }

    /// Of consecutive ones.
    pub fn first(&self) -> i64 {
        self.first.unwrap_or_default()
    }
}

//! Keys where the caller keeps them: nothing is copied before it is stored.

use super::compare::{are_narrow, common, common_wide};
use super::prefetch;

/// The tokens of a key. Another thread may write to them during the call, so nothing follows from having looked at one.
#[derive(Clone, Copy)]
pub enum Key<'a> {
    Narrow(&'a [u32]),
    /// 64-bit integers, signed or not, which may lie outside of the tokens.
    Wide(&'a [i64]),
}

impl<'a> Key<'a> {
    pub const fn len(&self) -> usize {
        match self {
            Key::Narrow(tokens) => tokens.len(),
            Key::Wide(tokens) => tokens.len(),
        }
    }

    pub fn from(&self, at: usize) -> Key<'a> {
        match self {
            Key::Narrow(tokens) => Key::Narrow(&tokens[at..]),
            Key::Wide(tokens) => Key::Wide(&tokens[at..]),
        }
    }

    pub fn part(&self, at: usize, count: usize) -> Key<'a> {
        match self {
            Key::Narrow(tokens) => Key::Narrow(&tokens[at..at + count]),
            Key::Wide(tokens) => Key::Wide(&tokens[at..at + count]),
        }
    }

    /// Asks for its first lines; the processor itself asks for those that follow.
    pub fn prefetch(&self) {
        const FIRST: usize = 256;
        let (start, bytes) = match self {
            Key::Narrow(tokens) => (tokens.as_ptr().cast::<u8>(), size_of_val(*tokens)),
            Key::Wide(tokens) => (tokens.as_ptr().cast::<u8>(), size_of_val(*tokens)),
        };
        (0..bytes.min(FIRST)).step_by(prefetch::LINE).for_each(|at| prefetch::line(start.wrapping_add(at)));
    }

    /// Cut to 32 bits.
    #[inline]
    pub fn token(&self, at: usize) -> u32 {
        match self {
            Key::Narrow(tokens) => tokens[at],
            Key::Wide(tokens) => tokens[at] as u32,
        }
    }

    pub fn first(&self) -> Option<u32> {
        match self {
            Key::Narrow(tokens) => tokens.first().copied(),
            Key::Wide(tokens) => tokens.first().and_then(|&token| u32::try_from(token).ok()),
        }
    }

    /// Tokens shared with `stored` from the front.
    #[inline]
    pub fn common(&self, stored: &[u32]) -> usize {
        match self {
            Key::Narrow(tokens) => common(tokens, stored),
            Key::Wide(tokens) => common_wide(tokens, stored),
        }
    }

    /// Where the first number stands that is no token.
    pub fn first_outside(&self) -> Option<usize> {
        match self {
            Key::Narrow(_) => None,
            Key::Wide(tokens) if are_narrow(tokens) => None,
            Key::Wide(tokens) => tokens.iter().position(|&token| u32::try_from(token).is_err()),
        }
    }

    /// Calls `each` with the first `count` tokens, cut to 32 bits.
    #[inline]
    pub fn for_each(&self, count: usize, mut each: impl FnMut(u32)) {
        match self {
            Key::Narrow(tokens) => tokens[..count].iter().for_each(|&token| each(token)),
            Key::Wide(tokens) => tokens[..count].iter().for_each(|&token| each(token as u32)),
        }
    }
}

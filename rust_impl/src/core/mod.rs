//! The tree. Nothing in this folder knows Python: tokens, slots and namespaces come in, depths and handles go out.
//!
//! `docs/DESIGN.md` explains the algorithm and its words: run, span, mark, birth, space.

// What nobody asks for is not there.
#![allow(clippy::len_without_is_empty, clippy::new_without_default)]

mod births;
mod check;
mod children;
#[allow(unsafe_code)]
mod compare;
mod config;
mod events;
mod eviction;
mod hashing;
mod heap;
mod insert;
mod key;
mod locks;
pub mod log;
mod marks;
mod merge;
mod node;
#[allow(unsafe_code)]
mod prefetch;
mod printing;
mod queue;
mod slab;
mod slots;
mod spaces;
#[allow(unsafe_code)]
mod span;
mod split;
mod text;
mod touches;
mod tree;
mod walk;
#[allow(unsafe_code)]
mod window;

#[cfg(test)]
mod tests;

pub use births::Handle;
pub use check::Fault;
pub use compare::{are_not_negative, copy, loops_name};
pub use config::{Config, Limits, Policy};
pub use events::Event;
pub use eviction::Evicted;
pub use hashing::Digest;
pub use insert::{Inserted, Insertion};
pub use key::Key;
pub use prefetch::GROUP;
pub use spaces::Namespace;
pub use text::formatted;
pub use touches::Touch;
pub use tree::{Stats, Tree};
pub use walk::Request;

/// Parts for the benchmarks of each design choice. Nothing else is to build on them.
#[doc(hidden)]
pub mod parts {
    pub use super::heap::{Heap, Places};
    pub use super::slab::{Entry, Slab};
    pub use super::slots::Slots;
    pub use super::span::Spans;
    pub use super::window::Window;
}

/// No run, mark, birth, space or generation.
const NIL: u32 = u32::MAX;

/// Ids above have a meaning of their own.
const LARGEST_ID: u32 = u32::MAX - 3;

/// Allocation failed; nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory;

impl From<std::collections::TryReserveError> for NoMemory {
    fn from(_: std::collections::TryReserveError) -> Self {
        NoMemory
    }
}

impl From<hashbrown::TryReserveError> for NoMemory {
    fn from(_: hashbrown::TryReserveError) -> Self {
        NoMemory
    }
}

/// Why an operation did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The page was evicted, or the cache reset.
    Stale,
    /// The namespace given is not the one of the node.
    OtherNamespace,
    /// A bigram key below a page must begin with this token, the last one of that page.
    NotJoined {
        last_token: u32,
    },
    /// No lock of that page is left to take back.
    NotLocked,
    /// A page has as many locks as can be counted.
    TooManyLocks,
    /// That number of the key is no token.
    Outside {
        position: usize,
    },
    /// The touch log is full: drain it, then try again.
    LogFull,
    /// Another thread wrote to the key meanwhile: copy it, then try again.
    Raced,
    NoMemory,
}

impl From<NoMemory> for Failure {
    fn from(_: NoMemory) -> Self {
        Failure::NoMemory
    }
}

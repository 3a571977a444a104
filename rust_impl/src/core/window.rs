//! Windows: what a run shows of a span, and how the tree keeps it.
//!
//! Obligations of `unsafe`:
//!
//! O1. A run with pages holds its window while it exists. So what the window leads to is there and initialised, as the
//!     first three obligations of `span` have it.
//! O2. The memory of a span is written before anybody else has it, and never again: who shares it only reads.

use std::ptr::NonNull;

use super::prefetch;
use super::slots::{Form, Slots};
use super::tree::Tree;

/// Where the tokens of a window begin.
#[derive(Clone, Copy)]
pub struct TokenStart(pub(super) NonNull<u32>);

/// Where its slots begin. Consecutive ones are not stored: then the address is the first slot itself.
#[derive(Clone, Copy)]
pub struct SlotStart(pub(super) *mut u8);

const _: () = assert!(size_of::<usize>() == size_of::<i64>(), "an address has room for a slot on 64-bit machines only");

/// `len` units of a span: `len + overlap` tokens and `len` slots. The tree keeps its parts in a `Run` and a `Detail`.
///
/// Unless `len` is 0, the obligations of `span` hold of it.
#[derive(Clone, Copy)]
pub struct Window {
    pub(super) tokens: NonNull<u32>,
    pub(super) slots: SlotStart,
    pub(super) len: u32,
    pub(super) generation: u32,
}

// SAFETY: O2, from whatever thread.
unsafe impl Send for TokenStart {}
// SAFETY: O2.
unsafe impl Sync for TokenStart {}
// SAFETY: O2.
unsafe impl Send for SlotStart {}
// SAFETY: O2.
unsafe impl Sync for SlotStart {}

impl Default for TokenStart {
    fn default() -> Self {
        Self(NonNull::dangling())
    }
}

impl Default for SlotStart {
    fn default() -> Self {
        Self::consecutive(0)
    }
}

impl SlotStart {
    pub(super) const fn consecutive(first: i64) -> Self {
        Self(std::ptr::without_provenance_mut(first as usize))
    }

    pub(super) fn first(self) -> i64 {
        self.0.addr() as i64
    }

    /// `units` further on.
    pub(super) const fn after(self, units: usize, form: Form) -> Self {
        match form {
            Form::Consecutive => Self(self.0.wrapping_add(units)),
            Form::Narrow | Form::Wide => Self(self.0.wrapping_add(units * form.bytes())),
        }
    }
}

impl Window {
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    pub const fn generation(&self) -> u32 {
        self.generation
    }
}

impl Tree {
    /// The tokens that a run shows; of a root none.
    #[inline]
    pub fn tokens(&self, run: u32) -> &[u32] {
        let run = &self.runs[run];
        if run.len == 0 {
            return &[];
        }
        // SAFETY: O1, since the run exists for as long as `&self` lives; O2.
        unsafe { std::slice::from_raw_parts(run.tokens.0.as_ptr(), run.len() + self.config.overlap()) }
    }

    /// Its slots.
    #[inline]
    pub fn slots(&self, run: u32) -> Slots<'_> {
        if self.runs[run].len == 0 { Slots::none() } else { self.spans.slots(&self.window(run)) }
    }

    pub fn window(&self, run: u32) -> Window {
        let (run, detail) = (&self.runs[run], &self.details[run]);
        Window { tokens: run.tokens.0, slots: detail.slots, len: run.len, generation: detail.generation }
    }

    /// No other run holds that window.
    pub fn set_window(&mut self, run: u32, window: Window) {
        let (run, detail) = (&mut self.runs[run], &mut self.details[run]);
        (run.tokens, run.len) = (TokenStart(window.tokens), window.len);
        (detail.slots, detail.generation) = (window.slots, window.generation);
    }

    /// Asks for the slots of a run, which an eviction will read.
    pub fn prefetch_slots(&self, run: u32) {
        const MOST: usize = 1024;
        let (start, bytes) = match self.slots(run) {
            Slots::Consecutive { .. } => return,
            Slots::Narrow(slots) => (slots.as_ptr().cast::<u8>(), size_of_val(slots)),
            Slots::Wide(slots) => (slots.as_ptr().cast::<u8>(), size_of_val(slots)),
        };
        for at in (0..bytes.min(MOST)).step_by(prefetch::LINE) {
            prefetch::line(start.wrapping_add(at));
        }
    }
}

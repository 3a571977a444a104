//! What the trees note for the log: nothing unless asked, and then after the operation.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The bits of what is to be noted.
static LISTENING: AtomicU32 = AtomicU32::new(0);

/// Those that nobody was told yet, of all trees. (A fork finds it free: it waits for all work without the GIL.)
static NOTES: Mutex<Vec<Note>> = Mutex::new(Vec::new());

/// In the order of the bits that `triradix.log` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    Reset = 1,
    Split = 2,
    Merge = 4,
    Evict = 8,
    Copy = 16,
    Made = 32,
    Gone = 64,
    Short = 128,
    Broken = 256,
    Failed = 512,
}

/// Something that happened, and two numbers about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    pub kind: Kind,
    pub first: usize,
    pub second: usize,
}

/// Sets the bits of what is to be noted.
pub fn listen(kinds: u32) {
    LISTENING.store(kinds, Ordering::Relaxed);
}

/// Whether anything is.
#[inline]
pub fn is_listening() -> bool {
    LISTENING.load(Ordering::Relaxed) != 0
}

/// Where something happens that may be told: one load on paths that few calls take, none on that of a match.
#[inline]
pub fn note(kind: Kind, first: usize, second: usize) {
    if LISTENING.load(Ordering::Relaxed) & kind as u32 != 0 {
        keep(Note { kind, first, second });
    }
}

/// Without memory for it there is no note: a log makes no operation fail.
#[cold]
fn keep(note: Note) {
    let mut notes = NOTES.lock().unwrap_or_else(PoisonError::into_inner);
    if notes.try_reserve(1).is_ok() {
        notes.push(note);
    }
}

pub fn take_notes() -> Vec<Note> {
    std::mem::take(&mut *NOTES.lock().unwrap_or_else(PoisonError::into_inner))
}

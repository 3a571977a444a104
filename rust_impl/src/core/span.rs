//! Tokens and slots of the runs, in generations of bump-allocated memory.
//!
//! A span is written once, when its run is made. Runs see it through windows: a split gives two windows of one span.
//! A generation is freed whole when its last window is; one that is mostly dead is queued, and the tree copies the
//! windows that are left out of it. Slots take 4 bytes in most generations, and 8 in those of spans with larger ones.
//!
//! Obligations of `unsafe`:
//!
//! O1. A window of `len` units leads to `len` slots of its generation's width and `len + overlap` tokens, in one span
//!     and aligned. Only `allocate` makes one from nothing; `split_front` and `trim` narrow one, `join_front` undoes that.
//! O2. What a window leads to is initialised: `store` and `store_joined` fill all of it before anybody else has it.
//! O3. Its generation lives as long as it does: `windows` counts them, and a generation is dropped at 0. Each window is
//!     held by one run, or is on its way to one; whoever frees it or gives it away forgets it. `Tree::check` recounts.
//! O4. Memory fresh from `allocate` is nobody else's. It is written then, through `&mut Spans`, and never again; all
//!     else reads, through `&Spans` or `&Tree`.
//! O5. A `Bump` is used through `&mut Spans` alone.

use std::alloc::Layout;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use bumpalo::Bump;

use super::compare::{are_narrow, copy, narrow, widen};
use super::key::Key;
use super::slab::{Entry, Slab};
use super::tree::Tree;
use super::{NIL, NoMemory, prefetch};

/// Where the tokens of a window begin.
#[derive(Clone, Copy)]
pub struct TokenStart(NonNull<u32>);

/// Where its slots begin.
#[derive(Clone, Copy)]
pub struct SlotStart(NonNull<u8>);

/// `len` units of a span: `len + overlap` tokens and `len` slots. The tree keeps its parts in a `Run` and a `Detail`.
///
/// Unless `len` is 0, O1, O2 and O3 hold of it.
#[derive(Clone, Copy)]
pub struct Window {
    tokens: NonNull<u32>,
    slots: NonNull<u8>,
    len: u32,
    generation: u32,
}

/// The slots of a window, as they are stored.
#[derive(Clone, Copy)]
pub enum Slots<'a> {
    Narrow(&'a [u32]),
    Wide(&'a [i64]),
}

// SAFETY: O4, so that shared access is reading only, from whatever thread.
unsafe impl Send for TokenStart {}
// SAFETY: O4.
unsafe impl Sync for TokenStart {}
// SAFETY: O4.
unsafe impl Send for SlotStart {}
// SAFETY: O4.
unsafe impl Sync for SlotStart {}

impl Default for TokenStart {
    fn default() -> Self {
        Self(NonNull::dangling())
    }
}

impl Default for SlotStart {
    fn default() -> Self {
        // Aligned for slots of every width.
        Self(NonNull::<i64>::dangling().cast())
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

impl<'a> Slots<'a> {
    /// Fills `to`, which is as long.
    pub fn copy_to(self, to: &mut [MaybeUninit<i64>]) {
        assert_eq!(self.len(), to.len());
        match self {
            Slots::Narrow(slots) => widen(slots, to),
            Slots::Wide(slots) => copy(slots, to),
        }
    }

    pub fn part(self, range: std::ops::Range<usize>) -> Slots<'a> {
        match self {
            Slots::Narrow(slots) => Slots::Narrow(&slots[range]),
            Slots::Wide(slots) => Slots::Wide(&slots[range]),
        }
    }

    pub fn append_to(self, to: &mut Vec<i64>) {
        match self {
            Slots::Narrow(slots) => to.extend(slots.iter().map(|&slot| i64::from(slot))),
            Slots::Wide(slots) => to.extend_from_slice(slots),
        }
    }

    /// The last page first, in token order within a page.
    pub fn append_pages_backwards(self, page: usize, to: &mut Vec<i64>) {
        match self {
            Slots::Narrow(slots) if page == 1 => to.extend(slots.iter().rev().map(|&slot| i64::from(slot))),
            Slots::Wide(slots) if page == 1 => to.extend(slots.iter().rev()),
            Slots::Narrow(slots) => {
                for page in slots.rchunks_exact(page) {
                    to.extend(page.iter().map(|&slot| i64::from(slot)));
                }
            }
            Slots::Wide(slots) => slots.rchunks_exact(page).for_each(|page| to.extend_from_slice(page)),
        }
    }

    pub const fn len(self) -> usize {
        match self {
            Slots::Narrow(slots) => slots.len(),
            Slots::Wide(slots) => slots.len(),
        }
    }
}

#[derive(Default)]
struct Generation {
    bump: Bump,
    /// Bytes that it was made for, and how many of them are given out.
    capacity: usize,
    used: usize,
    /// Bytes that windows show. A split of bigram units counts the shared token twice.
    live: usize,
    windows: usize,
    /// The first run that has a window here; the runs are linked among themselves.
    first_run: u32,
    /// Its place in the order of all generations ever made.
    serial: u64,
    /// Whether slots take 8 bytes.
    wide: bool,
    queued: bool,
}

impl Entry for Generation {
    fn link(&mut self) -> &mut u32 {
        &mut self.first_run
    }
}

/// One part in so many of the memory may be dead.
const TOLERATED: usize = 8;

/// Which generation a span goes to.
#[derive(Clone, Copy)]
struct Kind {
    wide: bool,
    /// Copied out of a sparse generation. (Mixed with new spans, the old ones would soon die and leave holes.)
    moved: bool,
}

impl Kind {
    const fn place(self) -> usize {
        self.wide as usize + 2 * self.moved as usize
    }
}

pub struct Spans {
    generations: Slab<Generation>,
    /// The generations that are being filled, one for each `Kind`.
    filling: [u32; 4],
    overlap: usize,
    generation_bytes: usize,
    /// Sums over the generations: bytes that the bump allocators hold, and that windows show.
    allocated: usize,
    live: usize,
    made: u64,
    /// (id, serial) of generations to copy out, the longest in need first. Those that died meanwhile are still in it.
    sparse: VecDeque<(u32, u64)>,
}

// SAFETY: O5: a `Bump` is not `Sync` because it allocates through `&self`.
unsafe impl Sync for Spans {}

impl Spans {
    pub const fn new(overlap: usize, generation_bytes: usize) -> Self {
        Self {
            generations: Slab::new(),
            filling: [NIL; 4],
            overlap,
            generation_bytes,
            allocated: 0,
            live: 0,
            made: 0,
            sparse: VecDeque::new(),
        }
    }

    pub const fn bytes(&self) -> usize {
        self.allocated
    }

    /// Bytes that all windows together show.
    pub const fn shown_bytes(&self) -> usize {
        self.live
    }

    pub fn table_bytes(&self) -> usize {
        self.generations.bytes() + self.sparse.capacity() * size_of::<(u32, u64)>()
    }

    /// A new span with a copy of these tokens and slots: one slot for each unit, one token more for each overlap.
    pub fn store(&mut self, tokens: Key, slots: &[i64]) -> Result<Window, NoMemory> {
        assert_eq!(tokens.len(), slots.len() + self.overlap, "a span has one slot for each unit");
        let wide = !are_narrow(slots);
        let window = self.allocate(slots.len(), Kind { wide, moved: false })?;
        // SAFETY: O1, O4.
        let to = unsafe { uninit(window.tokens, tokens.len()) };
        match tokens {
            Key::Narrow(tokens) => copy(tokens, to),
            Key::Wide(tokens) => narrow(tokens, to),
        }
        if wide {
            // SAFETY: O1, O4.
            copy(slots, unsafe { uninit(window.slots.cast::<i64>(), slots.len()) });
        } else {
            // SAFETY: O1, O4.
            narrow(slots, unsafe { uninit(window.slots.cast::<u32>(), slots.len()) });
        }
        Ok(window)
    }

    /// A new span with copies of what these windows show, of which each follows the one before.
    pub fn store_joined(
        &mut self,
        windows: impl Iterator<Item = Window> + Clone,
        moved: bool,
    ) -> Result<Window, NoMemory> {
        let mut len = 0;
        let mut wide = false;
        for window in windows.clone() {
            assert!(window.len > 0, "only runs with pages are moved");
            len += window.len();
            wide |= self.generations[window.generation].wide;
        }
        let joined = self.allocate(len, Kind { wide, moved })?;
        // SAFETY: O1, O4.
        let mut tokens = unsafe { uninit(joined.tokens, len + self.overlap) };
        for window in windows.clone() {
            // The last `overlap` tokens of each are the first of the next, and are written twice.
            copy(self.tokens(&window), &mut tokens[..window.len() + self.overlap]);
            tokens = &mut tokens[window.len()..];
        }
        if wide {
            // SAFETY: O1, O4.
            let mut slots = unsafe { uninit(joined.slots.cast::<i64>(), len) };
            for window in windows {
                let (here, below) = slots.split_at_mut(window.len());
                self.slots(&window).copy_to(here);
                slots = below;
            }
        } else {
            // SAFETY: O1, O4.
            let mut slots = unsafe { uninit(joined.slots.cast::<u32>(), len) };
            for window in windows {
                let Slots::Narrow(from) = self.slots(&window) else { unreachable!("a copy of wide slots is wide") };
                let (here, below) = slots.split_at_mut(window.len());
                copy(from, here);
                slots = below;
            }
        }
        Ok(joined)
    }

    /// The tokens of a window with pages.
    pub fn tokens(&self, window: &Window) -> &[u32] {
        // SAFETY: O1, O2; O3, since nothing is freed while `&self` lives; O4.
        unsafe { std::slice::from_raw_parts(window.tokens.as_ptr(), window.len() + self.overlap) }
    }

    /// Its slots.
    pub fn slots(&self, window: &Window) -> Slots<'_> {
        if self.generations[window.generation].wide {
            // SAFETY: O1, O2; O3, since nothing is freed while `&self` lives; O4.
            Slots::Wide(unsafe { std::slice::from_raw_parts(window.slots.as_ptr().cast::<i64>(), window.len()) })
        } else {
            // SAFETY: O1, O2; O3, since nothing is freed while `&self` lives; O4.
            Slots::Narrow(unsafe { std::slice::from_raw_parts(window.slots.as_ptr().cast::<u32>(), window.len()) })
        }
    }

    /// Cuts the first `units` off; `window` keeps the rest.
    pub fn split_front(&mut self, window: &mut Window, units: usize) -> Window {
        assert!(0 < units && units < window.len(), "both parts of a split have pages");
        let front = Window { len: units as u32, ..*window };
        let shared = self.overlap * size_of::<u32>();
        let generation = &mut self.generations[window.generation];
        // SAFETY: O1: units < len, so it stays inside the span.
        window.tokens = unsafe { window.tokens.add(units) };
        // SAFETY: O1, as above.
        window.slots = unsafe { window.slots.add(units * slot_bytes(generation.wide)) };
        window.len -= units as u32;
        generation.windows += 1;
        generation.live += shared;
        self.live += shared;
        front
    }

    /// Whether `lower` begins in the same span where `upper` ends. (Tokens and slots of one span lie one after the
    /// other, so two spans are never adjacent in both.)
    pub fn adjacent(&self, upper: &Window, lower: &Window) -> bool {
        upper.generation == lower.generation
            && upper.tokens.as_ptr().wrapping_add(upper.len()) == lower.tokens.as_ptr()
            && upper.slots.as_ptr().wrapping_add(upper.len() * slot_bytes(self.generations[upper.generation].wide))
                == lower.slots.as_ptr()
    }

    /// The opposite of `split_front`.
    pub fn join_front(&mut self, upper: Window, lower: &mut Window) {
        assert!(self.adjacent(&upper, lower), "only neighbouring windows of a span are joined in place");
        lower.tokens = upper.tokens;
        lower.slots = upper.slots;
        lower.len += upper.len;
        let shared = self.overlap * size_of::<u32>();
        let generation = &mut self.generations[upper.generation];
        generation.windows -= 1;
        generation.live -= shared;
        self.live -= shared;
    }

    /// Cuts `units` off the end; at least one unit stays.
    pub fn trim(&mut self, window: &mut Window, units: usize) {
        assert!(units < window.len(), "a window that is used up is freed");
        window.len -= units as u32;
        let generation = &mut self.generations[window.generation];
        let bytes = units * (size_of::<u32>() + slot_bytes(generation.wide));
        generation.live -= bytes;
        self.live -= bytes;
        self.note_sparse(window.generation);
    }

    pub fn free(&mut self, window: Window) {
        let id = window.generation;
        let bytes = self.live_bytes(id, window.len());
        let generation = &mut self.generations[id];
        generation.live -= bytes;
        generation.windows -= 1;
        self.live -= bytes;
        if generation.windows > 0 || self.filling.contains(&id) {
            self.note_sparse(id);
        } else {
            self.drop_generation(id);
        }
    }

    pub fn first_run(&self, generation: u32) -> u32 {
        self.generations[generation].first_run
    }

    pub fn set_first_run(&mut self, generation: u32, run: u32) {
        self.generations[generation].first_run = run;
    }

    /// A generation to copy out, if more memory is dead than is tolerable. As long as generations die whole, as they do
    /// where the oldest goes first, none is.
    pub fn take_sparse(&mut self) -> Option<u32> {
        while self.allocated - self.live > self.allocated / TOLERATED + 2 * self.generation_bytes {
            let (id, serial) = self.sparse.pop_front()?;
            let generation = &mut self.generations[id];
            if generation.serial == serial && generation.queued {
                generation.queued = false;
                return Some(id);
            }
        }
        None
    }

    /// Units that were ever written to a generation.
    pub fn units_written(&self, generation: u32) -> usize {
        let generation = &self.generations[generation];
        generation.used / (slot_bytes(generation.wide) + size_of::<u32>())
    }

    /// What `check` recomputes: (windows, live bytes) of each generation that exists.
    pub fn counts(&self) -> impl Iterator<Item = (u32, usize, usize)> {
        let there = self.generations.entries().filter(|(_, generation)| generation.capacity > 0);
        there.map(|(id, generation)| (id, generation.windows, generation.live))
    }

    /// Bytes that a window of so many units shows.
    pub fn live_bytes(&self, generation: u32, len: usize) -> usize {
        len * slot_bytes(self.generations[generation].wide) + (len + self.overlap) * size_of::<u32>()
    }

    /// An uninitialised span: the caller must fill it before the window is read.
    fn allocate(&mut self, units: usize, kind: Kind) -> Result<Window, NoMemory> {
        assert!(units > 0, "a span holds at least one unit");
        let len = u32::try_from(units).map_err(|_| NoMemory)?;
        let slots = Layout::array::<u8>(units * slot_bytes(kind.wide)).map_err(|_| NoMemory)?;
        let tokens = Layout::array::<u32>(units + self.overlap).map_err(|_| NoMemory)?;
        let slots = slots.align_to(slot_bytes(kind.wide)).map_err(|_| NoMemory)?;
        let (span, tokens_at) = slots.extend(tokens).map_err(|_| NoMemory)?;
        let span = span.pad_to_align();
        let id = self.generation_for(span.size(), kind)?;
        let live = self.live_bytes(id, units);
        let generation = &mut self.generations[id];
        let start = generation.bump.try_alloc_layout(span).map_err(|_| NoMemory)?;
        self.allocated -= generation.capacity;
        generation.capacity = generation.bump.allocated_bytes();
        self.allocated += generation.capacity;
        generation.used += span.size();
        generation.live += live;
        self.live += live;
        generation.windows += 1;
        // SAFETY: O1: the slots come first, then the tokens at their place in the layout.
        let tokens = unsafe { start.add(tokens_at) }.cast::<u32>();
        Ok(Window { tokens, slots: start, len, generation: id })
    }

    /// The generation to allocate in. A span that would fill much of one gets its own.
    fn generation_for(&mut self, bytes: usize, kind: Kind) -> Result<u32, NoMemory> {
        let current = self.filling[kind.place()];
        if current != NIL && self.generations[current].used + bytes <= self.generation_bytes {
            return Ok(current);
        }
        self.generations.reserve(1)?;
        self.reserve_sparse()?;
        let own = bytes > self.generation_bytes / 2;
        let size = if own { bytes } else { self.generation_bytes };
        let bump = Bump::try_with_capacity(size).map_err(|_| NoMemory)?;
        let capacity = bump.allocated_bytes();
        self.allocated += capacity;
        self.made += 1;
        let (serial, wide) = (self.made, kind.wide);
        let generation = Generation { bump, capacity, first_run: NIL, serial, wide, ..Generation::default() };
        let id = self.generations.insert(generation);
        if !own {
            let retired = std::mem::replace(&mut self.filling[kind.place()], id);
            if retired != NIL {
                if self.generations[retired].windows == 0 {
                    self.drop_generation(retired);
                } else {
                    self.note_sparse(retired);
                }
            }
        }
        Ok(id)
    }

    /// Room for every generation in the queue, once those that died are out of it. Amortised O(1): only half of a full
    /// queue can be alive.
    fn reserve_sparse(&mut self) -> Result<(), NoMemory> {
        let most = 2 * (self.generations.len() + 1);
        if self.sparse.len() >= most {
            let generations = &self.generations;
            self.sparse.retain(|&(id, serial)| generations[id].serial == serial && generations[id].queued);
        }
        let room = (most + most).saturating_sub(self.sparse.len());
        Ok(self.sparse.try_reserve(room)?)
    }

    fn note_sparse(&mut self, id: u32) {
        let generation = &mut self.generations[id];
        if !generation.queued && generation.live < generation.used / 4 * 3 && !self.filling.contains(&id) {
            generation.queued = true;
            let serial = generation.serial;
            self.sparse.push_back((id, serial));
        }
    }

    fn drop_generation(&mut self, id: u32) {
        let generation = self.generations.remove(id);
        self.allocated -= generation.capacity;
    }
}

/// # Safety
/// O1, O4: there is room for so many, aligned, and nobody else has it.
unsafe fn uninit<'a, T>(start: NonNull<T>, count: usize) -> &'a mut [MaybeUninit<T>] {
    // SAFETY: O1, O4, of the caller.
    unsafe { std::slice::from_raw_parts_mut(start.as_ptr().cast(), count) }
}

const fn slot_bytes(wide: bool) -> usize {
    if wide { size_of::<i64>() } else { size_of::<u32>() }
}

impl Tree {
    /// The tokens that a run shows; of a root none.
    #[inline]
    pub fn tokens(&self, run: u32) -> &[u32] {
        let run = &self.runs[run];
        if run.len == 0 {
            return &[];
        }
        // SAFETY: O1, O2; O3, since the run holds its window for as long as `&self` lives; O4.
        unsafe { std::slice::from_raw_parts(run.tokens.0.as_ptr(), run.len() + self.config.overlap()) }
    }

    /// Its slots.
    #[inline]
    pub fn slots(&self, run: u32) -> Slots<'_> {
        if self.runs[run].len == 0 { Slots::Narrow(&[]) } else { self.spans.slots(&self.window(run)) }
    }

    pub fn window(&self, run: u32) -> Window {
        let (run, detail) = (&self.runs[run], &self.details[run]);
        Window { tokens: run.tokens.0, slots: detail.slots.0, len: run.len, generation: detail.generation }
    }

    /// No other run holds that window (O3).
    pub fn set_window(&mut self, run: u32, window: Window) {
        let (run, detail) = (&mut self.runs[run], &mut self.details[run]);
        (run.tokens, run.len) = (TokenStart(window.tokens), window.len);
        (detail.slots, detail.generation) = (SlotStart(window.slots), window.generation);
    }

    /// Asks for the slots of a run, which an eviction will read.
    pub fn prefetch_slots(&self, run: u32) {
        const MOST: usize = 1024;
        let start = self.details[run].slots.0.as_ptr();
        let bytes = self.runs[run].len() * size_of::<u32>();
        for at in (0..bytes.min(MOST)).step_by(prefetch::LINE) {
            prefetch::line(start.wrapping_add(at));
        }
    }
}

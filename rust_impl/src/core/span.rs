//! Tokens and slots of the runs, in generations of bump-allocated memory.
//!
//! A span is written once, when its run is made. Runs see it through windows: a split gives two windows of one span.
//! A generation is freed whole when its last window is; one that is mostly dead is queued, and the tree copies the
//! windows that are left out of it. All the unsafe code of the tree is in this file.

use std::alloc::Layout;
use std::collections::VecDeque;
use std::ptr::NonNull;

use bumpalo::Bump;

use super::slab::Slab;
use super::{NIL, NoMemory};

/// `len` units of a span: `len + overlap` tokens and `len` slots. Not `Clone`: each window is counted.
///
/// Invariant: unless `generation` is NIL (then `len` is 0), the pointers lead to initialised memory of that
/// generation of the `Spans` that made the window, and the generation lives as long as the window does.
pub struct Window {
    tokens: NonNull<u32>,
    slots: NonNull<i64>,
    len: usize,
    generation: u32,
}

impl Window {
    pub const fn len(&self) -> usize {
        self.len
    }

    pub const fn generation(&self) -> u32 {
        self.generation
    }
}

impl Default for Window {
    fn default() -> Self {
        Self { tokens: NonNull::dangling(), slots: NonNull::dangling(), len: 0, generation: NIL }
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
    queued: bool,
}

/// One part in so many of the memory may be dead.
const TOLERATED: usize = 8;

pub struct Spans {
    generations: Slab<Generation>,
    /// The generations that are being filled: with new spans, and with what is copied out of sparse ones. (Mixed, the
    /// old ones would soon die and leave holes among the new.)
    current: u32,
    moved: u32,
    overlap: usize,
    generation_bytes: usize,
    /// Sums over the generations: bytes that the bump allocators hold, and that windows show.
    allocated: usize,
    live: usize,
    made: u64,
    /// (id, serial) of generations to copy out, the longest in need first. Those that died meanwhile are still in it.
    sparse: VecDeque<(u32, u64)>,
}

// SAFETY: the pointers in a `Window` lead into memory that `Spans` owns. It is written only through `&mut Spans`, before
// the window exists, and read through `&Spans`; so shared access is reading only, from whatever thread.
unsafe impl Send for Window {}
unsafe impl Sync for Window {}
// SAFETY: `Bump` is not `Sync` because it allocates through `&self`. Here it is used through `&mut Spans` alone.
unsafe impl Sync for Spans {}

impl Spans {
    pub const fn new(overlap: usize, generation_bytes: usize) -> Self {
        Self {
            generations: Slab::new(),
            current: NIL,
            moved: NIL,
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

    pub fn tokens<'a>(&'a self, window: &'a Window) -> &'a [u32] {
        if window.generation == NIL {
            return &[];
        }
        // SAFETY: by the invariant of `Window`, `len + overlap` initialised tokens start here and outlive `window`.
        unsafe { std::slice::from_raw_parts(window.tokens.as_ptr(), window.len + self.overlap) }
    }

    pub fn slots<'a>(&'a self, window: &'a Window) -> &'a [i64] {
        // SAFETY: by the invariant of `Window`, `len` initialised slots start here (or len is 0 at a dangling pointer).
        unsafe { std::slice::from_raw_parts(window.slots.as_ptr(), window.len) }
    }

    /// A new span with a copy of these tokens and slots: `tokens.len() == slots.len() + overlap`.
    pub fn store(&mut self, tokens: &[u32], slots: &[i64]) -> Result<Window, NoMemory> {
        assert_eq!(tokens.len(), slots.len() + self.overlap, "a span has one slot for each unit");
        let window = self.allocate(slots.len(), false)?;
        // SAFETY: `allocate` gave room for so many tokens and slots, fresh and therefore apart from the sources.
        unsafe {
            window.tokens.as_ptr().copy_from_nonoverlapping(tokens.as_ptr(), tokens.len());
            window.slots.as_ptr().copy_from_nonoverlapping(slots.as_ptr(), slots.len());
        }
        Ok(window)
    }

    /// A new span with a copy of two windows that follow each other.
    pub fn store_joined(&mut self, upper: &Window, lower: &Window) -> Result<Window, NoMemory> {
        assert!(upper.generation != NIL && lower.generation != NIL, "only runs with pages are joined");
        let window = self.allocate(upper.len + lower.len, false)?;
        // SAFETY: both windows are initialised (their invariant), the new span is fresh and has room for their sum.
        // The last `overlap` tokens of the upper one are the first of the lower one.
        unsafe {
            window.tokens.as_ptr().copy_from_nonoverlapping(upper.tokens.as_ptr(), upper.len);
            let below = window.tokens.as_ptr().add(upper.len);
            below.copy_from_nonoverlapping(lower.tokens.as_ptr(), lower.len + self.overlap);
            window.slots.as_ptr().copy_from_nonoverlapping(upper.slots.as_ptr(), upper.len);
            window.slots.as_ptr().add(upper.len).copy_from_nonoverlapping(lower.slots.as_ptr(), lower.len);
        }
        Ok(window)
    }

    /// A new span with a copy of what the window shows.
    pub fn store_again(&mut self, source: &Window) -> Result<Window, NoMemory> {
        assert!(source.generation != NIL, "only runs with pages are moved");
        let window = self.allocate(source.len, true)?;
        // SAFETY: as in `store_joined`, for one window.
        unsafe {
            window.tokens.as_ptr().copy_from_nonoverlapping(source.tokens.as_ptr(), source.len + self.overlap);
            window.slots.as_ptr().copy_from_nonoverlapping(source.slots.as_ptr(), source.len);
        }
        Ok(window)
    }

    /// Cuts the first `units` off; `window` keeps the rest.
    pub fn split_front(&mut self, window: &mut Window, units: usize) -> Window {
        assert!(window.generation != NIL && 0 < units && units < window.len, "both parts of a split have pages");
        let front = Window { tokens: window.tokens, slots: window.slots, len: units, generation: window.generation };
        // SAFETY: units < len, so both pointers stay inside the span.
        unsafe {
            window.tokens = window.tokens.add(units);
            window.slots = window.slots.add(units);
        }
        window.len -= units;
        let generation = &mut self.generations[window.generation];
        generation.windows += 1;
        generation.live += self.overlap * size_of::<u32>();
        self.live += self.overlap * size_of::<u32>();
        front
    }

    /// Whether `lower` begins in the same span where `upper` ends. (Tokens and slots of one span lie one after the
    /// other, so two spans are never adjacent in both.)
    pub fn adjacent(upper: &Window, lower: &Window) -> bool {
        upper.generation == lower.generation
            && upper.tokens.as_ptr().wrapping_add(upper.len) == lower.tokens.as_ptr()
            && upper.slots.as_ptr().wrapping_add(upper.len) == lower.slots.as_ptr()
    }

    /// The opposite of `split_front`.
    pub fn join_front(&mut self, upper: Window, lower: &mut Window) {
        assert!(Self::adjacent(&upper, lower), "only neighbouring windows of a span are joined in place");
        lower.tokens = upper.tokens;
        lower.slots = upper.slots;
        lower.len += upper.len;
        let generation = &mut self.generations[upper.generation];
        generation.windows -= 1;
        generation.live -= self.overlap * size_of::<u32>();
        self.live -= self.overlap * size_of::<u32>();
    }

    /// Cuts `units` off the end; at least one unit stays.
    pub fn trim(&mut self, window: &mut Window, units: usize) {
        assert!(units < window.len, "a window that is used up is freed");
        window.len -= units;
        let bytes = units * (size_of::<u32>() + size_of::<i64>());
        self.generations[window.generation].live -= bytes;
        self.live -= bytes;
        self.note_sparse(window.generation);
    }

    pub fn free(&mut self, window: Window) {
        let id = window.generation;
        if id == NIL {
            return;
        }
        let bytes = self.live_bytes(window.len);
        let generation = &mut self.generations[id];
        generation.live -= bytes;
        generation.windows -= 1;
        self.live -= bytes;
        if self.generations[id].windows > 0 || id == self.current || id == self.moved {
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

    /// What `check` recomputes: (windows, live bytes) of each generation that exists.
    pub fn counts(&self) -> impl Iterator<Item = (u32, usize, usize)> {
        let there = self.generations.entries().filter(|(_, generation)| generation.capacity > 0);
        there.map(|(id, generation)| (id, generation.windows, generation.live))
    }

    /// Bytes that a window of so many units shows.
    pub const fn live_bytes(&self, len: usize) -> usize {
        len * size_of::<i64>() + (len + self.overlap) * size_of::<u32>()
    }

    fn span_bytes(&self, len: usize) -> Option<usize> {
        let tokens = len.checked_add(self.overlap)?.checked_mul(size_of::<u32>())?;
        let bytes = len.checked_mul(size_of::<i64>())?.checked_add(tokens)?;
        // Padded, so that the next span is aligned without a gap.
        bytes.checked_next_multiple_of(size_of::<i64>())
    }

    /// An uninitialised span: the caller must fill it before the window is read.
    fn allocate(&mut self, len: usize, moved: bool) -> Result<Window, NoMemory> {
        assert!(len > 0, "a span holds at least one unit");
        let bytes = self.span_bytes(len).ok_or(NoMemory)?;
        let layout = Layout::from_size_align(bytes, align_of::<i64>()).map_err(|_| NoMemory)?;
        let id = self.generation_for(bytes, moved)?;
        let live = self.live_bytes(len);
        let generation = &mut self.generations[id];
        let start = generation.bump.try_alloc_layout(layout).map_err(|_| NoMemory)?;
        self.allocated -= generation.capacity;
        generation.capacity = generation.bump.allocated_bytes();
        self.allocated += generation.capacity;
        generation.used += bytes;
        generation.live += live;
        self.live += live;
        generation.windows += 1;
        let slots = start.cast::<i64>();
        // SAFETY: the slots come first, then the tokens; both lie in the `bytes` just allocated, aligned to 8.
        let tokens = unsafe { slots.add(len) }.cast::<u32>();
        Ok(Window { tokens, slots, len, generation: id })
    }

    /// The generation to allocate in. A span that would fill much of one gets its own.
    fn generation_for(&mut self, bytes: usize, moved: bool) -> Result<u32, NoMemory> {
        let current = if moved { self.moved } else { self.current };
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
        let serial = self.made;
        let id =
            self.generations.insert(Generation { bump, capacity, first_run: NIL, serial, ..Generation::default() });
        if !own {
            let place = if moved { &mut self.moved } else { &mut self.current };
            let retired = std::mem::replace(place, id);
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
        let filling = id == self.current || id == self.moved;
        if !filling && !generation.queued && generation.live < generation.used / 4 * 3 {
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

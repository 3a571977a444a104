//! Tokens and slots of the runs, in generations of bump-allocated memory.
//!
//! A span is written once, when its run is made. Runs see it through windows: a split gives two windows of one span.
//! A generation is freed whole when its last window is; one that is mostly dead is queued, and the tree copies the
//! windows that are left out of it. All spans of a generation keep their slots in one form.
//!
//! Obligations of `unsafe`:
//!
//! O1. A window of `len` units leads to `len` slots of its generation's form, unless they are consecutive, and to
//!     `len + overlap` tokens, in one span and aligned. Only `allocate` makes one from nothing; `split_front` and `trim`
//!     narrow one, `join_front` undoes that.
//! O2. What a window leads to is initialised: `store` and `store_joined` fill all of it before anybody else has it.
//! O3. Its generation lives as long as it does: `windows` counts them, and a generation is dropped at 0. Each window is
//!     held by one run, or is on its way to one; whoever frees it or gives it away forgets it. `Tree::check` recounts.
//! O4. Memory fresh from `allocate` is nobody else's. It is written then, through `&mut Spans`, and never again; all
//!     else reads, through `&Spans` or `&Tree`.
//! O5. A `Bump` is used through `&mut Spans` alone.

use std::alloc::Layout;
use std::collections::VecDeque;
use std::mem::MaybeUninit;

use bumpalo::Bump;

use super::compare::{copy, narrow};
use super::key::Key;
use super::slab::{Entry, Slab};
use super::slots::{Form, JoinedSlots, Slots};
use super::window::{SlotStart, Window};
use super::{NIL, NoMemory};

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
    form: Form,
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
    form: Form,
    /// Copied out of a sparse generation. (Mixed with new spans, the old ones would soon die and leave holes.)
    moved: bool,
}

impl Kind {
    const fn place(self) -> usize {
        self.form as usize + Form::COUNT * self.moved as usize
    }
}

pub struct Spans {
    generations: Slab<Generation>,
    /// The generations that are being filled, one for each `Kind`.
    filling: [u32; 2 * Form::COUNT],
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
            filling: [NIL; 2 * Form::COUNT],
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
        let form = Form::of(slots);
        let mut window = self.allocate(slots.len(), Kind { form, moved: false })?;
        // SAFETY: O1, O4.
        let to = unsafe { uninit(window.tokens.as_ptr(), tokens.len()) };
        match tokens {
            Key::Narrow(tokens) => copy(tokens, to),
            Key::Wide(tokens) => narrow(tokens, to),
        }
        let start = window.slots.0;
        match form {
            Form::Consecutive => window.slots = SlotStart::consecutive(slots[0]),
            // SAFETY: O1, O4.
            Form::Narrow => narrow(slots, unsafe { uninit(start.cast(), slots.len()) }),
            // SAFETY: O1, O4.
            Form::Wide => copy(slots, unsafe { uninit(start.cast(), slots.len()) }),
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
        let mut joined_slots = JoinedSlots::default();
        for window in windows.clone() {
            assert!(window.len > 0, "only runs with pages are moved");
            len += window.len();
            joined_slots.add(self.slots(&window));
        }
        let form = joined_slots.form();
        let mut joined = self.allocate(len, Kind { form, moved })?;
        // SAFETY: O1, O4.
        let mut tokens = unsafe { uninit(joined.tokens.as_ptr(), len + self.overlap) };
        for window in windows.clone() {
            // The last `overlap` tokens of each are the first of the next, and are written twice.
            copy(self.tokens(&window), &mut tokens[..window.len() + self.overlap]);
            tokens = &mut tokens[window.len()..];
        }
        let start = joined.slots.0;
        match form {
            Form::Consecutive => joined.slots = SlotStart::consecutive(joined_slots.first()),
            Form::Narrow => {
                // SAFETY: O1, O4.
                let mut slots = unsafe { uninit(start.cast::<u32>(), len) };
                for window in windows {
                    let (here, below) = slots.split_at_mut(window.len());
                    self.slots(&window).copy_narrow_to(here);
                    slots = below;
                }
            }
            Form::Wide => {
                // SAFETY: O1, O4.
                let mut slots = unsafe { uninit(start.cast::<i64>(), len) };
                for window in windows {
                    let (here, below) = slots.split_at_mut(window.len());
                    self.slots(&window).copy_to(here);
                    slots = below;
                }
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
        let (start, count) = (window.slots.0, window.len());
        match self.generations[window.generation].form {
            Form::Consecutive => Slots::Consecutive { first: window.slots.first(), count },
            // SAFETY: O1, O2; O3, since nothing is freed while `&self` lives; O4.
            Form::Narrow => Slots::Narrow(unsafe { std::slice::from_raw_parts(start.cast(), count) }),
            // SAFETY: O1, O2; O3, since nothing is freed while `&self` lives; O4.
            Form::Wide => Slots::Wide(unsafe { std::slice::from_raw_parts(start.cast(), count) }),
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
        window.slots = window.slots.after(units, generation.form);
        window.len -= units as u32;
        generation.windows += 1;
        generation.live += shared;
        self.live += shared;
        front
    }

    /// Whether `lower` begins where `upper` ends, as the parts of a span do that was split.
    pub fn adjacent(&self, upper: &Window, lower: &Window) -> bool {
        upper.generation == lower.generation
            && upper.tokens.as_ptr().wrapping_add(upper.len()) == lower.tokens.as_ptr()
            && upper.slots.after(upper.len(), self.generations[upper.generation].form).0 == lower.slots.0
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
        let bytes = units * (size_of::<u32>() + generation.form.bytes());
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
        generation.used / (generation.form.bytes() + size_of::<u32>())
    }

    /// What `check` recomputes: (windows, live bytes) of each generation that exists.
    pub fn counts(&self) -> impl Iterator<Item = (u32, usize, usize)> {
        let there = self.generations.entries().filter(|(_, generation)| generation.capacity > 0);
        there.map(|(id, generation)| (id, generation.windows, generation.live))
    }

    /// Bytes that a window of so many units shows.
    pub fn live_bytes(&self, generation: u32, len: usize) -> usize {
        len * self.generations[generation].form.bytes() + (len + self.overlap) * size_of::<u32>()
    }

    /// An uninitialised span: the caller must fill it before the window is read.
    fn allocate(&mut self, units: usize, kind: Kind) -> Result<Window, NoMemory> {
        assert!(units > 0, "a span holds at least one unit");
        let len = u32::try_from(units).map_err(|_| NoMemory)?;
        let tokens = Layout::array::<u32>(units + self.overlap).map_err(|_| NoMemory)?;
        let slots = match kind.form {
            Form::Consecutive => Ok(Layout::new::<()>()),
            Form::Narrow => Layout::array::<u32>(units),
            Form::Wide => Layout::array::<i64>(units),
        };
        let (span, tokens_at) = slots.and_then(|slots| slots.extend(tokens)).map_err(|_| NoMemory)?;
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
        Ok(Window { tokens, slots: SlotStart(start.as_ptr()), len, generation: id })
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
        let (serial, form) = (self.made, kind.form);
        let generation = Generation { bump, capacity, first_run: NIL, serial, form, ..Generation::default() };
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
unsafe fn uninit<'a, T>(start: *mut T, count: usize) -> &'a mut [MaybeUninit<T>] {
    // SAFETY: O1, O4, of the caller.
    unsafe { std::slice::from_raw_parts_mut(start.cast(), count) }
}

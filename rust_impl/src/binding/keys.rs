//! Keys and values: lists, tuples, integer buffers and `PrefixKey`s, as tokens or slots.
//! What is accepted, and the words of the errors, are those of `triradix.keys`.
//!
//! Obligations of `unsafe`:
//!
//! O1. Of pinned numbers only the buffer is pinned with the whole; nothing moves it, and `drop` does not either.
//! O2. The buffer, or the memo, that elements stand in is held by the numbers whose place they are.
//! O3. Numbers that are shared are not changed: they are read, which needs no GIL, and what a memo remembers has a lock.

use std::pin::Pin;
use std::sync::Mutex;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyString, PyTuple, PyType};

use super::buffer::{Buffer, Elements, Stored};
use super::digits::{Items, read_plain};
use super::errors::{no_memory, type_error, value_error};
use super::memo::Memo;
use super::objects::{int64, is_of, tuple_of};
use super::shared::shared;
use crate::core::{Handle, Key, are_not_negative};

/// What the numbers are in the caller's words: ("key", "token") or ("values", "value").
pub struct Role {
    pub what: &'static str,
    pub word: &'static str,
}

pub const KEY: Role = Role { what: "key", word: "token" };
pub const VALUES: Role = Role { what: "values", word: "value" };

impl Role {
    pub fn wrong_form(&self, source: &Bound<'_, PyAny>) -> PyResult<PyErr> {
        let kind = source.get_type();
        Ok(type_error(format_args!(
            "{} must be a list, a tuple, an integer buffer or a PrefixKey, not {}",
            self.what,
            kind.name()?
        )))
    }
}

/// u32 for tokens, i64 for slots.
pub trait Number: Copy + 'static {
    const SIGNED: bool;
    const RANGE: &'static str;
    /// The largest 64 bits of an element, signed or not, that is in range: 2ⁿ − 1 for some n.
    fn limit(signed: bool) -> u64;
    fn from_bits(bits: u64) -> Self;
    fn scratch() -> &'static Mutex<Vec<Self>>;
}

/// Taken while a call needs them, so that most keys cost no allocation. One for all threads: the GIL lets one at a time
/// get here, and the C library aborts where it has no memory to see to the end of a thread's own.
static TOKENS: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static SLOTS: Mutex<Vec<i64>> = Mutex::new(Vec::new());

impl Number for u32 {
    const SIGNED: bool = false;
    const RANGE: &'static str = "0 … 4294967295";

    fn limit(_: bool) -> u64 {
        u64::from(u32::MAX)
    }

    fn from_bits(bits: u64) -> Self {
        bits as u32
    }

    fn scratch() -> &'static Mutex<Vec<Self>> {
        &TOKENS
    }
}

impl Number for i64 {
    const SIGNED: bool = true;
    const RANGE: &'static str = "-9223372036854775808 … 9223372036854775807";

    fn limit(signed: bool) -> u64 {
        if signed { u64::MAX } else { i64::MAX as u64 }
    }

    fn from_bits(bits: u64) -> Self {
        bits as i64
    }

    fn scratch() -> &'static Mutex<Vec<Self>> {
        &SLOTS
    }
}

pub fn out_of_range<T: Number>(role: &Role, position: usize, shown: impl std::fmt::Display) -> PyErr {
    value_error(format_args!("{} {position} is {shown}, outside {}", role.word, T::RANGE))
}

/// The numbers of an argument: a checked copy, or the buffer that they stand in.
pub struct Numbers<T: Number> {
    buffer: Buffer,
    copy: Vec<T>,
    place: Place,
    /// Of a `PrefixKey`; keeps its elements.
    memo: Option<Py<Memo>>,
}

enum Place {
    Copy,
    /// As `T`, each of which is in range.
    Same(Elements),
    /// Tokens in 64 bits, not looked at yet: the tree compares them as they are, and checks only those that differ.
    Wide(Elements),
}

/// The tokens of a key, and the slots for them.
pub type Tokens = Numbers<u32>;
pub type Values = Numbers<i64>;

// SAFETY: O3.
unsafe impl Sync for Tokens {}

impl<T: Number> Numbers<T> {
    pub const fn empty() -> Self {
        Self { buffer: Buffer::empty(), copy: Vec::new(), place: Place::Copy, memo: None }
    }

    #[inline(always)]
    fn parts(self: Pin<&mut Self>) -> (Pin<&mut Buffer>, &mut Vec<T>, &mut Place) {
        // SAFETY: O1.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: O1.
        (unsafe { Pin::new_unchecked(&mut this.buffer) }, &mut this.copy, &mut this.place)
    }

    /// Elements of the buffer as `S`. Not for a copy.
    #[inline(always)]
    fn elements<S: Stored>(&self, elements: Elements) -> &[S] {
        // SAFETY: O2. A racing writer changes what is compared or copied, which any bits may be.
        unsafe { elements.slice() }
    }
}

impl Tokens {
    /// One of many that are pinned together.
    pub fn one_of(many: Pin<&mut [Tokens]>, index: usize) -> Pin<&mut Tokens> {
        // SAFETY: O1.
        unsafe { many.map_unchecked_mut(|many| &mut many[index]) }
    }

    pub fn key(&self) -> Key<'_> {
        match self.place {
            Place::Copy => Key::Narrow(&self.copy),
            Place::Same(elements) => Key::Narrow(self.elements(elements)),
            Place::Wide(elements) => Key::Wide(self.elements(elements)),
        }
    }

    /// `triradix.keys.as_tokens`, but that a number out of range may be left to the tree to find.
    pub fn read(mut self: Pin<&mut Self>, source: &Bound<'_, PyAny>) -> PyResult<()> {
        if !is_prefix_key(source)? {
            return self.read_as(source, &KEY);
        }
        let memo = match Memo::of(source)? {
            Some(memo) => memo,
            None => {
                let tokens = prefix_key_tokens(source)?;
                self.as_mut().read_as(&tokens, &KEY)?;
                match self.place {
                    Place::Same(elements) => Memo::make(source, &tokens, elements)?,
                    // An empty key.
                    _ => return Ok(()),
                }
            }
        };
        // SAFETY: O1: neither of the two is pinned.
        let this = unsafe { self.get_unchecked_mut() };
        this.place = Place::Same(memo.get().elements());
        this.memo = Some(memo.unbind());
        Ok(())
    }

    /// The page of that cache where a `PrefixKey` was found last.
    pub fn recall(&self, cache: u64) -> Option<Handle> {
        self.memo.as_ref()?.get().recall(cache)
    }

    /// Where it was found now.
    pub fn remember(&self, cache: u64, handle: &Handle) {
        if let Some(memo) = &self.memo {
            memo.get().remember(cache, handle);
        }
    }

    /// The error of the first number that is no token, if there is one: errors of a key come before all others.
    pub fn outside(&self) -> Option<PyErr> {
        let Place::Wide(elements) = self.place else { return None };
        let position = self.key().first_outside()?;
        let bits = self.elements::<i64>(elements).get(position).copied()?;
        Some(if elements.signed {
            out_of_range::<u32>(&KEY, position, bits)
        } else {
            out_of_range::<u32>(&KEY, position, bits as u64)
        })
    }

    /// Makes a copy that nobody else can change, if it is not one already.
    pub fn copy(self: Pin<&mut Self>) -> PyResult<()> {
        let mut copy = take_scratch::<u32>();
        copy.try_reserve(self.key().len()).map_err(|error| no_memory(error.into()))?;
        if let Some(error) = self.outside() {
            return Err(error);
        }
        self.key().for_each(self.key().len(), |token| copy.push(token));
        let (_, kept, place) = self.parts();
        (*kept, *place) = (copy, Place::Copy);
        Ok(())
    }
}

impl Values {
    pub fn slots(&self) -> &[i64] {
        match self.place {
            Place::Copy => &self.copy,
            Place::Same(elements) | Place::Wide(elements) => self.elements(elements),
        }
    }

    /// `triradix.keys.as_slots` for a key of so many tokens. Their number is asked for before their form is.
    pub fn read(mut self: Pin<&mut Self>, source: &Bound<'_, PyAny>, tokens: usize) -> PyResult<()> {
        let refused = |count| {
            value_error(format_args!(
                "values has {count} elements, for a key of {tokens} tokens; there must be one for each token"
            ))
        };
        let count = if let Ok(list) = source.cast::<PyList>() {
            list.len()
        } else if let Ok(tuple) = source.cast::<PyTuple>() {
            tuple.len()
        } else {
            match source.len() {
                Err(error) if error.is_instance_of::<PyTypeError>(source.py()) => {
                    return Err(VALUES.wrong_form(source)?);
                }
                count => count?,
            }
        };
        if count != tokens {
            return Err(refused(count));
        }
        if is_prefix_key(source)? {
            self.as_mut().read_as(&prefix_key_tokens(source)?, &VALUES)?;
        } else {
            self.as_mut().read_as(source, &VALUES)?;
        }
        let count = self.slots().len();
        if count == tokens { Ok(()) } else { Err(refused(count)) }
    }
}

impl<T: Number> Numbers<T> {
    fn read_as(self: Pin<&mut Self>, source: &Bound<'_, PyAny>, role: &Role) -> PyResult<()> {
        let (buffer, copy, place) = self.parts();
        if let Ok(list) = source.cast::<PyList>() {
            *copy = take_scratch();
            if !read_plain(Items::List(list), copy)? {
                read_any(&tuple_of(list)?, role, copy)?;
            }
        } else if let Ok(tuple) = source.cast::<PyTuple>() {
            *copy = take_scratch();
            if !read_plain(Items::Tuple(tuple), copy)? {
                read_any(tuple, role, copy)?;
            }
        } else {
            let shape = buffer.take(source, role)?;
            *place = match shape.in_place() {
                Some(elements) if elements.size == size_of::<T>() && elements.signed == T::SIGNED => {
                    Place::Same(elements)
                }
                Some(elements) if !T::SIGNED && elements.size == size_of::<i64>() => Place::Wide(elements),
                // Without a negative one, 32-bit integers with a sign are tokens.
                Some(elements) if !T::SIGNED && elements.size == size_of::<i32>() && has_no_sign(elements) => {
                    Place::Same(elements)
                }
                _ => {
                    *copy = take_scratch();
                    shape.convert(role, copy)?;
                    Place::Copy
                }
            };
        }
        Ok(())
    }
}

fn has_no_sign(elements: Elements) -> bool {
    // SAFETY: O2.
    are_not_negative(unsafe { elements.slice() })
}

impl<T: Number> Drop for Numbers<T> {
    fn drop(&mut self) {
        const KEPT: usize = 1 << 16;
        if (1..=KEPT).contains(&self.copy.capacity()) {
            let mut copy = std::mem::take(&mut self.copy);
            copy.clear();
            if let Ok(mut scratch) = T::scratch().try_lock() {
                *scratch = copy;
            }
        }
    }
}

fn take_scratch<T: Number>() -> Vec<T> {
    T::scratch().try_lock().map(|mut scratch| std::mem::take(&mut *scratch)).unwrap_or_default()
}

#[inline]
fn is_prefix_key(source: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(is_of(source, shared(source.py())?.prefix_key.bind(source.py())))
}

/// Made when the module is loaded, as `memo::prepare` says.
pub fn tokens_name(py: Python<'_>) -> &Bound<'_, PyString> {
    pyo3::intern!(py, "_tokens")
}

fn prefix_key_tokens<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    key.getattr(tokens_name(key.py()))
}

/// Reads items of every type that is allowed; names the first that is not, else the first out of range.
fn read_any<T: Number>(items: &Bound<'_, PyTuple>, role: &Role, numbers: &mut Vec<T>) -> PyResult<()> {
    let py = items.py();
    let mut known: Option<Bound<'_, PyType>> = None;
    for (i, item) in items.iter().enumerate() {
        if known.as_ref().is_some_and(|known| item.get_type_ptr() == known.as_type_ptr()) {
            continue;
        }
        if !is_integer(&item)? {
            let kind = item.get_type();
            return Err(type_error(format_args!("{} {i} must be an integer, not {}", role.word, kind.name()?)));
        }
        known = Some(item.get_type());
    }
    numbers.try_reserve(items.len()).map_err(|error| no_memory(error.into()))?;
    for (i, item) in items.iter().enumerate() {
        // A NumPy integer as it is stored, whatever a subclass says of it.
        let int = if item.is_instance_of::<PyInt>() { item } else { shared(py)?.numpy_item.bind(py).call1((item,))? };
        let number = int64(int.cast()?);
        let Some(number) = number.filter(|&number| number as u64 <= T::limit(true)) else {
            // Of a subclass by its value, whatever it says of itself.
            let exact = shared(py)?.int_index.bind(py).call1((int,))?;
            let shown = shared(py)?.shown.bind(py).call1((exact,))?;
            return Err(out_of_range::<T>(role, i, shown));
        };
        numbers.push(T::from_bits(number as u64));
    }
    Ok(())
}

fn is_integer(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    if item.is_instance_of::<PyInt>() {
        return Ok(!item.is_instance_of::<PyBool>());
    }
    let (py, kind) = (item.py(), item.get_type());
    let shared = shared(py)?;
    Ok(kind.is_subclass(shared.numpy_integer.bind(py))? && !kind.is_subclass(shared.numpy_timedelta.bind(py))?)
}

//! Objects of one kind in one block of memory, named by u32 ids that are used again.

use std::ops::{Index, IndexMut};

use super::{LARGEST_ID, NIL, NoMemory};

/// What a slab holds. A vacant entry is the default one, but for its link.
pub trait Entry: Default {
    /// The field that leads to the next vacant entry while this one is vacant.
    fn link(&mut self) -> &mut u32;
}

pub struct Slab<T> {
    entries: Vec<T>,
    first_vacant: u32,
    vacant: usize,
}

impl<T: Entry> Slab<T> {
    pub const fn new() -> Self {
        Self { entries: Vec::new(), first_vacant: NIL, vacant: 0 }
    }

    /// Makes room for `more` insertions, so that they cannot fail.
    #[inline]
    pub fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        if more <= self.vacant + (self.entries.capacity() - self.entries.len()) { Ok(()) } else { self.grow(more) }
    }

    #[cold]
    fn grow(&mut self, more: usize) -> Result<(), NoMemory> {
        let fresh = more - self.vacant.min(more);
        if self.entries.len() + fresh > LARGEST_ID as usize {
            return Err(NoMemory);
        }
        Ok(self.entries.try_reserve(fresh)?)
    }

    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        let id = self.first_vacant;
        if id == NIL {
            self.entries.push(value);
            return (self.entries.len() - 1) as u32;
        }
        self.first_vacant = *std::mem::replace(&mut self.entries[id as usize], value).link();
        self.vacant -= 1;
        id
    }

    pub fn remove(&mut self, id: u32) -> T {
        let value = std::mem::take(&mut self.entries[id as usize]);
        *self.entries[id as usize].link() = self.first_vacant;
        self.first_vacant = id;
        self.vacant += 1;
        value
    }

    pub fn get(&self, id: u32) -> Option<&T> {
        self.entries.get(id as usize)
    }

    /// Occupied entries.
    pub fn len(&self) -> usize {
        self.entries.len() - self.vacant
    }

    /// Ids ever handed out lie below this.
    pub fn id_limit(&self) -> usize {
        self.entries.len()
    }

    /// Every entry, the vacant ones too.
    pub fn entries(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().enumerate().map(|(id, entry)| (id as u32, entry))
    }

    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<T>()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, id: u32) -> &T {
        &self.entries[id as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.entries[id as usize]
    }
}

/// More about the entries of a slab, under the same ids.
pub struct Column<T> {
    rows: Vec<T>,
}

impl<T: Default> Column<T> {
    pub const fn new() -> Self {
        Self { rows: Vec::new() }
    }

    /// Room for `more` ids above the largest one so far.
    #[inline]
    pub fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        if more <= self.rows.capacity() - self.rows.len() { Ok(()) } else { Ok(self.rows.try_reserve(more)?) }
    }

    /// Sets the row of an id that the slab has just given out.
    #[inline]
    pub fn set(&mut self, id: u32, row: T) {
        if id as usize == self.rows.len() {
            self.rows.push(row);
        } else {
            self.rows[id as usize] = row;
        }
    }

    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<T>()
    }
}

impl<T> Index<u32> for Column<T> {
    type Output = T;

    #[inline]
    fn index(&self, id: u32) -> &T {
        &self.rows[id as usize]
    }
}

impl<T> IndexMut<u32> for Column<T> {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.rows[id as usize]
    }
}

//! Objects of one kind in one block of memory, named by u32 ids that are used again.

use std::ops::{Index, IndexMut};

use super::{NIL, NoMemory};

/// A vacant entry holds `T::default()`, so that nothing that it owned stays alive.
pub struct Slab<T> {
    entries: Vec<T>,
    vacant: Vec<u32>,
}

impl<T: Default> Slab<T> {
    pub const fn new() -> Self {
        Self { entries: Vec::new(), vacant: Vec::new() }
    }

    /// Makes room for `more` insertions, so that they cannot fail.
    pub fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        let fresh = more.saturating_sub(self.vacant.len());
        if self.entries.len() + fresh >= NIL as usize {
            return Err(NoMemory);
        }
        self.entries.try_reserve(fresh)?;
        // The list of the vacant must hold every id, so that a removal cannot fail either.
        let ids = self.entries.len() + fresh - self.vacant.len();
        self.vacant.try_reserve(ids)?;
        Ok(())
    }

    pub fn insert(&mut self, value: T) -> u32 {
        match self.vacant.pop() {
            Some(id) => {
                self.entries[id as usize] = value;
                id
            }
            None => {
                self.entries.push(value);
                (self.entries.len() - 1) as u32
            }
        }
    }

    pub fn remove(&mut self, id: u32) -> T {
        self.vacant.push(id);
        std::mem::take(&mut self.entries[id as usize])
    }

    pub fn get(&self, id: u32) -> Option<&T> {
        self.entries.get(id as usize)
    }

    /// Occupied entries.
    pub fn len(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    /// Ids ever handed out lie below this.
    pub fn id_limit(&self) -> usize {
        self.entries.len()
    }

    /// Every entry, the vacant ones (with `T::default()`) too.
    pub fn entries(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().enumerate().map(|(id, entry)| (id as u32, entry))
    }

    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<T>() + self.vacant.capacity() * size_of::<u32>()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, id: u32) -> &T {
        &self.entries[id as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.entries[id as usize]
    }
}

//! KV events: what an index outside needs to know which pages are cached.

use std::collections::VecDeque;
use std::sync::Arc;

use super::NoMemory;
use super::spaces::Namespace;
use super::tree::Tree;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// One insert made pages.
    Stored {
        hashes: Vec<i64>,
        parent: Option<i64>,
        /// All tokens of the new pages; n + 1 of them make n bigrams.
        tokens: Vec<u32>,
        namespace: Option<Arc<Namespace>>,
    },
    /// One eviction freed pages, in this order.
    Removed { hashes: Vec<i64> },
    /// One reset.
    Cleared,
}

impl Tree {
    /// Hands over the queue.
    pub fn take_events(&mut self) -> VecDeque<Event> {
        std::mem::take(&mut self.events)
    }

    /// Puts a queue that could not be handed over before what came since.
    pub fn put_back_events(&mut self, mut events: VecDeque<Event>) {
        events.append(&mut self.events);
        self.events = events;
    }

    pub fn reserve_event(&mut self) -> Result<(), NoMemory> {
        Ok(self.events.try_reserve(1)?)
    }
}

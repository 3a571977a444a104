//! The model as plain as it gets: every page is a node, every call walks every page of its path.

use std::collections::BTreeMap;

use crate::core::{Config, Policy};

pub struct Page {
    /// None below a root.
    pub parent: Option<usize>,
    pub space: usize,
    pub depth: usize,
    pub tokens: Vec<u32>,
    pub slots: Vec<i64>,
    pub last: u64,
    pub creation: u64,
    pub hits: i64,
    pub priority: i64,
    /// Locks of this page itself, and those of pages below it too.
    pub own_locks: u64,
    pub locks: u64,
    pub children: usize,
    pub gone: bool,
}

pub struct PageTrie {
    config: Config,
    pub pages: Vec<Page>,
    place: BTreeMap<(usize, Option<usize>, Vec<u32>), usize>,
    clock: u64,
}

impl PageTrie {
    pub fn new(config: Config) -> Self {
        Self { config, pages: Vec::new(), place: BTreeMap::new(), clock: 0 }
    }

    fn page_keys(&self, tokens: &[u32]) -> Vec<Vec<u32>> {
        let (page, overlap) = (self.config.page_size, self.config.overlap());
        let units = tokens.len().saturating_sub(overlap);
        (0..units / page).map(|i| tokens[i * page..(i + 1) * page + overlap].to_vec()).collect()
    }

    /// The deepest page shared, from `start` on.
    pub fn peek(&self, space: usize, start: Option<usize>, tokens: &[u32]) -> Option<usize> {
        let mut at = start;
        for key in self.page_keys(tokens) {
            match self.place.get(&(space, at, key)) {
                Some(&page) => at = Some(page),
                None => break,
            }
        }
        at
    }

    pub fn depth(&self, page: Option<usize>) -> usize {
        page.map_or(0, |page| self.pages[page].depth)
    }

    pub fn path(&self, page: Option<usize>) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = page;
        while let Some(page) = at {
            path.push(page);
            at = self.pages[page].parent;
        }
        path.reverse();
        path
    }

    pub fn match_prefix(&mut self, space: usize, start: Option<usize>, tokens: &[u32]) -> Option<usize> {
        let found = self.peek(space, start, tokens);
        self.clock += 1;
        for page in self.path(found) {
            self.pages[page].last = self.clock;
        }
        found
    }

    /// (the deepest page that existed, the last page)
    pub fn insert(
        &mut self,
        space: usize,
        start: Option<usize>,
        tokens: &[u32],
        slots: &[i64],
        priority: i64,
        inserted_len: usize,
    ) -> (Option<usize>, Option<usize>) {
        let existing = self.match_prefix(space, start, tokens);
        for page in self.path(existing) {
            let page = &mut self.pages[page];
            page.priority = page.priority.max(priority);
            page.hits += i64::from(page.depth > inserted_len);
        }
        let base = self.depth(start);
        let mut at = existing;
        for key in self.page_keys(tokens).into_iter().skip((self.depth(existing) - base) / self.config.page_size) {
            let from = self.depth(at);
            if let Some(parent) = at {
                self.pages[parent].children += 1;
            }
            self.place.insert((space, at, key.clone()), self.pages.len());
            self.pages.push(Page {
                parent: at,
                space,
                depth: from + self.config.page_size,
                tokens: key,
                slots: slots[from - base..from - base + self.config.page_size].to_vec(),
                last: self.clock,
                creation: self.clock,
                hits: 1,
                priority,
                own_locks: 0,
                locks: 0,
                children: 0,
                gone: false,
            });
            at = Some(self.pages.len() - 1);
        }
        (existing, at)
    }

    pub fn lock(&mut self, page: usize) -> usize {
        self.pages[page].own_locks += 1;
        let mut newly = 0;
        for page in self.path(Some(page)) {
            newly += usize::from(self.pages[page].locks == 0);
            self.pages[page].locks += 1;
        }
        newly * self.config.page_size
    }

    pub fn unlock(&mut self, page: usize) -> Option<usize> {
        self.pages[page].own_locks = self.pages[page].own_locks.checked_sub(1)?;
        let mut freed = 0;
        for page in self.path(Some(page)) {
            self.pages[page].locks -= 1;
            freed += usize::from(self.pages[page].locks == 0);
        }
        Some(freed * self.config.page_size)
    }

    fn rank(&self, page: &Page) -> (i64, i64) {
        let (last, creation) = (page.last as i64, page.creation as i64);
        match self.config.policy {
            Policy::Lru => (last, 0),
            Policy::Lfu => (page.hits, last),
            Policy::Fifo => (creation, 0),
            Policy::Mru => (-last, 0),
            Policy::Filo => (-creation, 0),
            Policy::Priority => (page.priority, last),
            Policy::Slru => (i64::from(page.hits >= self.config.slru_threshold), last),
        }
    }

    /// The pages that go, in order.
    pub fn evict(&mut self, units: u64, space: Option<usize>) -> Vec<usize> {
        let mut freed = Vec::new();
        while ((freed.len() * self.config.page_size) as u64) < units {
            let free = |page: &Page| {
                !page.gone && page.children == 0 && page.locks == 0 && space.is_none_or(|space| space == page.space)
            };
            let candidates = (0..self.pages.len()).filter(|&page| free(&self.pages[page]));
            let Some(page) = candidates.min_by_key(|&page| self.rank(&self.pages[page])) else { break };
            let key = (self.pages[page].space, self.pages[page].parent, self.pages[page].tokens.clone());
            self.place.remove(&key);
            self.pages[page].gone = true;
            if let Some(parent) = self.pages[page].parent {
                self.pages[parent].children -= 1;
            }
            freed.push(page);
        }
        freed
    }

    pub fn reset(&mut self) {
        self.place.clear();
        for page in &mut self.pages {
            page.gone = true;
        }
    }

    pub fn sizes(&self) -> (usize, usize) {
        let there = || self.pages.iter().filter(|page| !page.gone);
        let size = self.config.page_size;
        (there().count() * size, there().filter(|page| page.locks > 0).count() * size)
    }

    pub fn slots(&self, page: Option<usize>) -> Vec<i64> {
        self.path(page).into_iter().flat_map(|page| self.pages[page].slots.clone()).collect()
    }

    pub fn last_token(&self, page: usize) -> u32 {
        self.pages[page].tokens[self.config.page_size]
    }
}

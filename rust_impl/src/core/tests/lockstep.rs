//! Drives the tree and the page trie with the same calls and compares every result.

use std::mem::MaybeUninit;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::page_trie::PageTrie;
use crate::core::{Config, Digest, Event, Failure, Handle, Insertion, Key, Namespace, Request, Tree};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// A handle of the tree and what it means: page None is the root of that space.
#[derive(Clone)]
struct Known {
    handle: Handle,
    space: usize,
    page: Option<usize>,
    epoch: usize,
}

pub struct Lockstep {
    random: Random,
    config: Config,
    tree: Tree,
    model: PageTrie,
    known: Vec<Known>,
    keys: Vec<Vec<u32>>,
    epoch: usize,
    slot: i64,
    events: Vec<Event>,
    /// Keys without a start that were found at that page.
    found: Vec<(usize, Vec<u32>, Handle)>,
}

fn namespace(space: usize) -> Option<Arc<Namespace>> {
    let pair = |a: Option<&str>, b: Option<&str>| {
        Some(Arc::new(Namespace { extra_key: a.map(Into::into), cache_salt: b.map(Into::into) }))
    };
    [None, pair(Some("a"), None), pair(None, Some("a"))][space].clone()
}

impl Lockstep {
    pub fn new(seed: u64, config: Config) -> Self {
        Self {
            random: Random(seed),
            config,
            tree: Tree::new(config),
            model: PageTrie::new(config),
            known: Vec::new(),
            keys: vec![Vec::new()],
            epoch: 0,
            slot: 0,
            events: Vec::new(),
            found: Vec::new(),
        }
    }

    pub fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            match self.random.below(20) {
                0..=6 => self.insert(),
                7..=10 => self.look_up(),
                11..=12 => self.lock(),
                13..=14 => self.unlock(),
                15..=17 => self.evict(),
                18 => self.look_at_nodes(),
                _ if self.random.below(40) == 0 => self.reset(),
                _ => self.evict(),
            }
            self.compare();
        }
        self.look_at_nodes();
    }

    /// Keys grow out of each other, so that they share, branch and nest.
    fn key(&mut self) -> Vec<u32> {
        let chosen = self.random.below(self.keys.len());
        let mut key = self.keys[chosen].clone();
        if self.random.below(4) == 0 {
            let cut = self.random.below(key.len() + 1);
            key.truncate(cut);
        }
        let more = self.random.below(4 * self.config.page_size + 4);
        let alphabet = if self.config.page_size == 16 { 1 } else { 2 };
        for _ in 0..more {
            key.push(self.random.below(alphabet + 1) as u32);
        }
        key.truncate(40 * self.config.page_size);
        if self.keys.len() < 200 {
            self.keys.push(key.clone());
        } else {
            self.keys[chosen] = key.clone();
        }
        key
    }

    fn is_stale(&self, known: &Known) -> bool {
        known.epoch != self.epoch || known.page.is_some_and(|page| self.model.pages[page].gone)
    }

    fn pick(&mut self) -> Option<Known> {
        if self.known.is_empty() {
            return None;
        }
        let chosen = self.random.below(self.known.len());
        Some(self.known[chosen].clone())
    }

    fn note(&mut self, handle: Handle, space: usize, page: Option<usize>) {
        let known = Known { handle, space, page, epoch: self.epoch };
        for other in &self.known {
            let same = (other.space, other.page, other.epoch) == (known.space, known.page, known.epoch)
                || (other.page.is_some() && other.page == known.page);
            assert_eq!(other.handle == known.handle, same, "equality of handles");
        }
        if self.known.len() < 60 {
            self.known.push(known);
        } else {
            let chosen = self.random.below(60);
            self.known[chosen] = known;
        }
    }

    /// Space, start and tokens of a call.
    fn request(&mut self) -> (usize, Option<Known>, Vec<u32>) {
        let key = self.key();
        let start = if self.random.below(3) == 0 { self.pick() } else { None };
        let Some(start) = start else { return (self.random.below(3), None, key) };
        let page = start.page.filter(|_| self.config.bigram && self.random.below(20) > 0);
        let joined = page.map(|page| self.model.last_token(page)).into_iter().chain(key).collect();
        (start.space, Some(start), joined)
    }

    /// What `start` makes of a call: None if it works.
    fn refusal(&self, start: &Option<Known>, tokens: &[u32]) -> Option<Failure> {
        let start = start.as_ref()?;
        if self.is_stale(start) {
            return Some(Failure::Stale);
        }
        let last_token = self.model.last_token(start.page.filter(|_| self.config.bigram)?);
        (tokens.first() != Some(&last_token)).then_some(Failure::NotJoined { last_token })
    }

    fn look_up(&mut self) {
        let (mut space, mut start, mut tokens) = self.request();
        let mut known = None;
        if !self.found.is_empty() && self.random.below(3) == 0 {
            // One that was found before, with something more behind it.
            let chosen = self.random.below(self.found.len());
            let (there, before, handle) = self.found[chosen].clone();
            let more = self.random.below(4 * self.config.page_size);
            tokens = before;
            tokens.extend((0..more).map(|_| self.random.below(3) as u32));
            (space, start, known) = (there, None, Some(handle));
        }
        let name = namespace(space);
        let wide: Vec<i64> = tokens.iter().map(|&token| i64::from(token)).collect();
        let key = if self.random.below(2) == 0 { Key::Narrow(&tokens) } else { Key::Wide(&wide) };
        let request =
            Request { key, namespace: Some(&name), start: start.as_ref().map(|s| &s.handle), known: known.as_ref() };
        let refusal = self.refusal(&start, &tokens);
        let at = start.as_ref().and_then(|start| start.page);
        if self.random.below(3) == 0 {
            let result = self.tree.peek_prefix(request);
            assert_eq!(result.as_ref().err(), refusal.as_ref());
            if let Ok(length) = result {
                assert_eq!(length, self.model.depth(self.model.peek(space, at, &tokens)));
            }
            return;
        }
        let mut handle = Handle::nowhere();
        let mut result = self.tree.match_prefix(request, &mut handle);
        if let Err(Failure::LogFull) = result {
            result = self.tree.match_prefix_alone(request, &mut handle);
        }
        assert_eq!(result.as_ref().err(), refusal.as_ref());
        if result.is_ok() {
            let page = self.model.match_prefix(space, at, &tokens);
            assert_eq!(handle.depth(), self.model.depth(page));
            if start.is_none() && !handle.is_root() {
                self.found.truncate(50);
                self.found.insert(0, (space, tokens, handle.clone()));
            }
            self.note(handle, space, page);
        }
    }

    fn insert(&mut self) {
        let (space, start, tokens) = self.request();
        let name = namespace(space);
        // Now and then ones that do not fit into 32 bits.
        let base = [0, 0, -1 << 40, 1 << 33][self.random.below(4)];
        let slots: Vec<i64> = (0..tokens.len() as i64).map(|i| base + self.slot + i).collect();
        self.slot += slots.len() as i64;
        let priority = self.random.below(5) as i64 - 2;
        let inserted_len = if self.random.below(2) == 0 { 0 } else { self.random.below(60) };
        let given = if start.is_some() && self.random.below(2) == 0 { None } else { Some(&name) };
        let wide: Vec<i64> = tokens.iter().map(|&token| i64::from(token)).collect();
        let key = if self.random.below(2) == 0 { Key::Narrow(&tokens) } else { Key::Wide(&wide) };
        let request = Request { key, namespace: given, start: start.as_ref().map(|s| &s.handle), known: None };
        let result = self.tree.insert(&Insertion { request, slots: &slots, priority, inserted_len });
        let refusal = self.refusal(&start, &tokens);
        assert_eq!(result.as_ref().err(), refusal.as_ref());
        let Ok(inserted) = result else { return };
        let at = start.as_ref().and_then(|start| start.page);
        let (existing, page) = self.model.insert(space, at, &tokens, &slots, priority, inserted_len);
        assert_eq!(inserted.prefix_len, self.model.depth(existing));
        assert_eq!(inserted.handle.depth(), self.model.depth(page));
        if existing != page && self.config.events {
            let path = self.model.path(page);
            let digests = self.digests(space, page);
            let first = existing.map_or(0, |existing| path.iter().position(|&p| p == existing).unwrap() + 1);
            let mut units: Vec<u32> = Vec::new();
            for (i, &page) in path[first..].iter().enumerate() {
                let skip = if i == 0 { 0 } else { self.config.overlap() };
                units.extend(&self.model.pages[page].tokens[skip..]);
            }
            self.events.push(Event::Stored {
                hashes: digests[first..].iter().map(short).collect(),
                parent: first.checked_sub(1).map(|i| short(&digests[i])),
                tokens: units,
                namespace: name.clone(),
            });
        }
        self.note(inserted.handle, space, page);
    }

    fn lock(&mut self) {
        let Some(known) = self.pick() else { return };
        let result = self.tree.inc_lock_ref(&known.handle);
        if self.is_stale(&known) {
            assert_eq!(result, Err(Failure::Stale));
        } else {
            assert_eq!(result, Ok(known.page.map_or(0, |page| self.model.lock(page))));
        }
    }

    fn unlock(&mut self) {
        let Some(known) = self.pick() else { return };
        let result = self.tree.dec_lock_ref(&known.handle);
        if self.is_stale(&known) {
            assert_eq!(result, Err(Failure::Stale));
        } else {
            let expected = known.page.map_or(Some(0), |page| self.model.unlock(page));
            assert_eq!(result, expected.ok_or(Failure::NotLocked));
        }
    }

    fn evict(&mut self) {
        let units = self.random.below(12 * self.config.page_size) as u64;
        let space = (self.random.below(3) == 0).then(|| self.random.below(3));
        let result = match space {
            None => self.tree.evict(units),
            Some(space) => self.tree.evict_namespace(&namespace(space), units),
        };
        let freed = self.model.evict(units, space);
        let slots: Vec<i64> = freed.iter().flat_map(|&page| self.model.pages[page].slots.clone()).collect();
        assert_eq!(result.unwrap().slots, slots);
        if self.config.events && !freed.is_empty() {
            let space_of = |page: usize| self.model.pages[page].space;
            let hashes = freed.iter().map(|&page| short(self.digests(space_of(page), Some(page)).last().unwrap()));
            self.events.push(Event::Removed { hashes: hashes.collect() });
        }
    }

    fn reset(&mut self) {
        self.tree.reset().unwrap();
        self.model.reset();
        self.epoch += 1;
        if self.config.events {
            self.events.push(Event::Cleared);
        }
    }

    fn look_at_nodes(&mut self) {
        for known in self.known.clone() {
            let stale = self.is_stale(&known);
            let from = self.random.below(10);
            let mut slots = vec![MaybeUninit::new(0); known.handle.depth().saturating_sub(from)];
            let result = self.tree.path_indices(&known.handle, from, &mut slots);
            // SAFETY: initialised above.
            let slots: Vec<i64> = slots.iter().map(|slot| unsafe { slot.assume_init() }).collect();
            let hashes = self.tree.block_hashes(&known.handle);
            if stale {
                assert_eq!(result, Err(Failure::Stale));
                assert_eq!(hashes, Err(Failure::Stale));
            } else {
                let expected = self.model.slots(known.page);
                assert_eq!(slots, expected[from.min(expected.len())..]);
                assert_eq!(hashes.unwrap(), self.digests(known.space, known.page));
            }
        }
        let mut all = self.tree.all_indices().unwrap();
        all.sort_unstable();
        let mut expected: Vec<i64> =
            self.model.pages.iter().filter(|page| !page.gone).flat_map(|page| page.slots.clone()).collect();
        expected.sort_unstable();
        assert_eq!(all, expected);
        assert!(self.tree.printed().unwrap().len() >= self.tree.stats().nodes);
    }

    fn digests(&self, space: usize, page: Option<usize>) -> Vec<Digest> {
        let mut before: Vec<u8> = namespace(space).as_deref().map_or(Vec::new(), |name| {
            let mut bytes = b"sglang-cache-namespace-v1".to_vec();
            for part in [&name.extra_key, &name.cache_salt] {
                bytes.push(u8::from(part.is_some()));
                if let Some(text) = part {
                    bytes.extend((text.len() as u64).to_le_bytes());
                    bytes.extend(text.bytes());
                }
            }
            Sha256::digest(bytes).to_vec()
        });
        let mut digests = Vec::new();
        for page in self.model.path(page) {
            for unit in self.model.pages[page].tokens.windows(1 + self.config.overlap()) {
                before.extend(unit.iter().flat_map(|token| token.to_le_bytes()));
            }
            let digest: Digest = Sha256::digest(&before).into();
            before = digest.to_vec();
            digests.push(digest);
        }
        digests
    }

    fn compare(&mut self) {
        let (total, protected) = self.model.sizes();
        assert_eq!((self.tree.total_size(), self.tree.protected_size()), (total, protected), "sizes");
        if self.random.below(2) == 0 {
            self.tree.drain_touches().unwrap();
        }
        self.tree.check().unwrap();
        assert_eq!(Vec::from(self.tree.take_events()), std::mem::take(&mut self.events), "events");
    }
}

fn short(digest: &Digest) -> i64 {
    i64::from_be_bytes(digest[..8].try_into().unwrap())
}

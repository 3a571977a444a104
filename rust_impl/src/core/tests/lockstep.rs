//! Drives the tree and the page trie with the same calls and compares every result.
//!
//! Obligation of `unsafe`:
//!
//! O1. What is read was written before.

use std::mem::MaybeUninit;
use std::sync::Arc;

use proptest::sample::Index;
use sha2::{Digest as _, Sha256};

use super::allocations;
use super::operations::{Call, Numbering, Path, Step};
use super::page_trie::PageTrie;
use crate::core::{Config, Digest, Event, Failure, Handle, Insertion, Key, Namespace, NoMemory, Request, Tree};

/// A handle of the tree and what it means: page None is the root of that space.
#[derive(Clone)]
struct Known {
    handle: Handle,
    space: usize,
    page: Option<usize>,
    epoch: usize,
}

pub struct Lockstep {
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
    /// Whether each call is first made with its first allocation failing, then its second, and so on.
    starved: bool,
}

fn namespace(space: usize) -> Option<Arc<Namespace>> {
    let pair = |a: Option<&str>, b: Option<&str>| {
        Some(Arc::new(Namespace { extra_key: a.map(Into::into), cache_salt: b.map(Into::into) }))
    };
    [None, pair(Some("a"), None), pair(None, Some("a"))][space].clone()
}

impl Lockstep {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            tree: Tree::new(config),
            model: PageTrie::new(config),
            known: Vec::new(),
            keys: vec![Vec::new()],
            epoch: 0,
            slot: 0,
            events: Vec::new(),
            found: Vec::new(),
            starved: false,
        }
    }

    pub fn starved(config: Config) -> Self {
        Self { starved: true, ..Self::new(config) }
    }

    pub fn run(&mut self, steps: Vec<Step>) {
        for (call, drained) in steps {
            match call {
                Call::Insert { path, name_given, numbering, priority, inserted_len } => {
                    self.insert(&path, name_given, numbering, priority, inserted_len);
                }
                Call::Match(path) => self.match_prefix(&path),
                Call::MatchMany(paths) => self.match_many(&paths),
                Call::Peek(path) => self.peek(&path),
                Call::MatchFound { found, more } => self.match_found(found, &more),
                Call::Lock(node) => self.lock(node),
                Call::Unlock(node) => self.unlock(node),
                Call::Evict { units, space } => self.evict(units as u64, space),
                Call::LookAtNodes { from } => self.look_at_nodes(from),
                Call::Reset => self.reset(),
            }
            if drained {
                self.attempt(Tree::drain_touches).unwrap();
            }
            self.compare();
        }
        self.look_at_nodes(0);
    }

    /// The call; where memory is short, only after it has failed for want of each of its allocations and changed
    /// nothing. (It may do without one.)
    fn attempt<T, E: From<NoMemory> + PartialEq>(&mut self, call: impl Fn(&mut Tree) -> Result<T, E>) -> Result<T, E> {
        if !self.starved {
            return call(&mut self.tree);
        }
        for spared in 0.. {
            let (result, refused) = allocations::refusing(spared, || call(&mut self.tree));
            if !refused || result.as_ref().err() != Some(&NoMemory.into()) {
                return result;
            }
            self.compare();
        }
        unreachable!("no call allocates for ever")
    }

    fn key(&mut self, path: &Path) -> Vec<u32> {
        let chosen = path.origin.index(self.keys.len());
        let mut key = self.keys[chosen].clone();
        if let Some(cut) = path.cut {
            key.truncate(cut.index(key.len() + 1));
        }
        key.extend(&path.more);
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

    fn pick(&self, node: Index) -> Option<Known> {
        if self.known.is_empty() { None } else { Some(node.get(&self.known).clone()) }
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
            // Whichever: the tick makes no two alike.
            let chosen = (known.handle.depth() * 7 + self.slot as usize) % 60;
            self.known[chosen] = known;
        }
    }

    /// Space, start and tokens of a call.
    fn request(&mut self, path: &Path) -> (usize, Option<Known>, Vec<u32>) {
        let key = self.key(path);
        let start = path.start.and_then(|(node, joins)| Some((self.pick(node)?, joins)));
        let Some((start, joins)) = start else { return (path.space, None, key) };
        let page = start.page.filter(|_| self.config.bigram && joins);
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

    fn peek(&mut self, path: &Path) {
        let (space, start, tokens) = self.request(path);
        let numbers = Numbers::new(&tokens, path.wide);
        let name = namespace(space);
        let handle = start.as_ref().map(|start| start.handle.clone());
        let result = self.attempt(|tree| tree.peek_prefix(numbers.request(&name, handle.as_ref(), None)));
        assert_eq!(result.as_ref().err(), self.refusal(&start, &tokens).as_ref());
        if let Ok(length) = result {
            let at = start.and_then(|start| start.page);
            assert_eq!(length, self.model.depth(self.model.peek(space, at, &tokens)));
        }
    }

    fn match_prefix(&mut self, path: &Path) {
        let (space, start, tokens) = self.request(path);
        self.look_up(space, start, None, tokens, path.wide);
    }

    fn match_found(&mut self, found: Index, more: &[u32]) {
        if !self.found.is_empty() {
            let (space, mut tokens, handle) = found.get(&self.found).clone();
            tokens.extend(more);
            self.look_up(space, None, Some(handle), tokens, more.len().is_multiple_of(2));
        }
    }

    fn look_up(&mut self, space: usize, start: Option<Known>, known: Option<Handle>, tokens: Vec<u32>, wide: bool) {
        let name = namespace(space);
        let numbers = Numbers::new(&tokens, wide);
        let handle = start.as_ref().map(|start| start.handle.clone());
        let beside_others = tokens.len().is_multiple_of(2);
        let result = self.attempt(|tree| {
            let request = numbers.request(&name, handle.as_ref(), known.as_ref());
            if beside_others {
                return tree.match_prefix(request);
            }
            let mut found = Handle::nowhere();
            tree.match_prefix_alone(request, &mut found)?;
            Ok(found)
        });
        assert_eq!(result.as_ref().err(), self.refusal(&start, &tokens).as_ref());
        if let Ok(handle) = result {
            let page = self.model.match_prefix(space, start.as_ref().and_then(|start| start.page), &tokens);
            assert_eq!(handle.depth(), self.model.depth(page));
            if start.is_none() && !handle.is_root() {
                self.found.truncate(50);
                self.found.insert(0, (space, tokens, handle.clone()));
            }
            self.note(handle, space, page);
        }
    }

    /// As a batch does it: all are found first, then all are noted, and nobody writes in between.
    fn match_many(&mut self, paths: &[Path]) {
        let keys: Vec<(usize, Vec<u32>)> = paths.iter().map(|path| (path.space, self.key(path))).collect();
        let (handles, touches): (Vec<_>, Vec<_>) = keys
            .iter()
            .map(|(space, tokens)| {
                let (numbers, name) = (Numbers::new(tokens, false), namespace(*space));
                self.tree.find_prefix(numbers.request(&name, None, None)).unwrap()
            })
            .unzip();
        self.attempt(|tree| tree.note_all(&touches)).unwrap();
        for ((space, tokens), handle) in keys.iter().zip(handles) {
            let page = self.model.match_prefix(*space, None, tokens);
            assert_eq!(handle.depth(), self.model.depth(page));
            self.note(handle, *space, page);
        }
    }

    fn insert(&mut self, path: &Path, name_given: bool, numbering: Numbering, priority: i64, inserted_len: usize) {
        let (space, start, tokens) = self.request(path);
        let name = namespace(space);
        let Numbering { from, apart, jump } = numbering;
        let slot = |i: i64| from + self.slot + i * apart + i / 8 * jump;
        let slots: Vec<i64> = (0..tokens.len() as i64).map(slot).collect();
        // No other call has any of these.
        self.slot += 3 * slots.len() as i64;
        let numbers = Numbers::new(&tokens, path.wide);
        let handle = start.as_ref().map(|start| start.handle.clone());
        let result = self.attempt(|tree| {
            let mut request = numbers.request(&name, handle.as_ref(), None);
            request.namespace = request.namespace.filter(|_| name_given || handle.is_none());
            tree.insert(&Insertion { request, slots: &slots, priority, inserted_len })
        });
        assert_eq!(result.as_ref().err(), self.refusal(&start, &tokens).as_ref());
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

    fn lock(&mut self, node: Index) {
        let Some(known) = self.pick(node) else { return };
        let result = self.attempt(|tree| tree.inc_lock_ref(&known.handle));
        if self.is_stale(&known) {
            assert_eq!(result, Err(Failure::Stale));
        } else {
            assert_eq!(result, Ok(known.page.map_or(0, |page| self.model.lock(page))));
        }
    }

    fn unlock(&mut self, node: Index) {
        let Some(known) = self.pick(node) else { return };
        let result = self.attempt(|tree| tree.dec_lock_ref(&known.handle));
        if self.is_stale(&known) {
            assert_eq!(result, Err(Failure::Stale));
        } else {
            let expected = known.page.map_or(Some(0), |page| self.model.unlock(page));
            assert_eq!(result, expected.ok_or(Failure::NotLocked));
        }
    }

    fn evict(&mut self, units: u64, space: Option<usize>) {
        let name = space.map(namespace);
        let result = self.attempt(|tree| match &name {
            None => tree.evict(units),
            Some(name) => tree.evict_namespace(name, units),
        });
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
        self.attempt(Tree::reset).unwrap();
        self.model.reset();
        self.epoch += 1;
        if self.config.events {
            self.events.push(Event::Cleared);
        }
    }

    fn look_at_nodes(&mut self, from: usize) {
        for known in self.known.clone() {
            let stale = self.is_stale(&known);
            let mut slots = vec![MaybeUninit::new(0); known.handle.depth().saturating_sub(from)];
            let result = self.tree.path_indices(&known.handle, from, &mut slots);
            // SAFETY: O1.
            let slots: Vec<i64> = slots.iter().map(|slot| unsafe { slot.assume_init() }).collect();
            let hashes = self.attempt(|tree| tree.block_hashes(&known.handle));
            if stale {
                assert_eq!(result, Err(Failure::Stale));
                assert_eq!(hashes, Err(Failure::Stale));
            } else {
                let expected = self.model.slots(known.page);
                assert_eq!(slots, expected[from.min(expected.len())..]);
                assert_eq!(hashes.unwrap(), self.digests(known.space, known.page));
            }
        }
        let mut all = self.attempt(|tree| tree.all_indices()).unwrap();
        all.sort_unstable();
        let mut expected: Vec<i64> =
            self.model.pages.iter().filter(|page| !page.gone).flat_map(|page| page.slots.clone()).collect();
        expected.sort_unstable();
        assert_eq!(all, expected);
        self.attempt(|tree| tree.check()).unwrap();
        assert!(self.attempt(|tree| tree.printed()).unwrap().len() >= self.tree.stats().nodes);
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
        self.tree.check().unwrap();
        assert_eq!(Vec::from(self.tree.take_events()), std::mem::take(&mut self.events), "events");
    }
}

/// A key, as it may be given.
enum Numbers {
    Narrow(Vec<u32>),
    Wide(Vec<i64>),
}

impl Numbers {
    fn new(tokens: &[u32], wide: bool) -> Self {
        if wide {
            Self::Wide(tokens.iter().map(|&token| token.into()).collect())
        } else {
            Self::Narrow(tokens.to_vec())
        }
    }

    fn request<'a>(
        &'a self,
        name: &'a Option<Arc<Namespace>>,
        start: Option<&'a Handle>,
        known: Option<&'a Handle>,
    ) -> Request<'a> {
        let key = match self {
            Self::Narrow(tokens) => Key::Narrow(tokens),
            Self::Wide(tokens) => Key::Wide(tokens),
        };
        Request { key, namespace: Some(name), start, known }
    }
}

fn short(digest: &Digest) -> i64 {
    i64::from_be_bytes(digest[..8].try_into().unwrap())
}

//! Block hashes: for each page SHA-256(digest of the page above ‖ its units as little-endian u32).
//!
//! A run keeps the digests of its first pages once somebody asked, or from the start with events on. A run with digests
//! hangs below pages that all have theirs.

use sha2::{Digest as _, Sha256};

use super::births::Handle;
use super::slab::Entry;
use super::spaces::Namespace;
use super::tree::Tree;
use super::{Failure, NIL, NoMemory};

pub type Digest = [u8; 32];

/// The digests of the first pages of a run.
#[derive(Default)]
pub struct Digests {
    list: Vec<Digest>,
    link: u32,
}

impl Entry for Digests {
    fn link(&mut self) -> &mut u32 {
        &mut self.link
    }
}

impl From<Vec<Digest>> for Digests {
    fn from(list: Vec<Digest>) -> Self {
        Self { list, link: NIL }
    }
}

/// How an event names a digest: its first 8 bytes as a big-endian signed integer.
pub fn event_hash(digest: &Digest) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = *digest;
    i64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// What stands before the first page of a namespace other than the default one.
pub fn namespace_seed(namespace: &Namespace) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update(b"sglang-cache-namespace-v1");
    for part in [&namespace.extra_key, &namespace.cache_salt] {
        match part {
            None => hasher.update([0]),
            Some(text) => {
                hasher.update([1]);
                hasher.update((text.len() as u64).to_le_bytes());
                hasher.update(text.as_bytes());
            }
        }
    }
    hasher.finalize().into()
}

/// The digests of the pages of `tokens`, appended to `digests`, in which there is room. `before` is that of the page
/// above.
fn hash_pages(tokens: &[u32], page: usize, overlap: usize, mut before: Option<Digest>, digests: &mut Vec<Digest>) {
    let mut hasher = Sha256::new();
    for first in (0..tokens.len() - overlap).step_by(page) {
        if let Some(before) = before {
            hasher.update(before);
        }
        for unit in tokens[first..first + page + overlap].windows(1 + overlap) {
            for token in unit {
                hasher.update(token.to_le_bytes());
            }
        }
        let digest = hasher.finalize_reset().into();
        digests.push(digest);
        before = Some(digest);
    }
}

impl Tree {
    /// The digests of the path to the node, first page first.
    pub fn block_hashes(&mut self, handle: &Handle) -> Result<Vec<Digest>, Failure> {
        let at = self.locate(handle)?;
        let mut hashes = Vec::new();
        let Some((run, depth)) = at.filter(|&(_, depth)| depth > 0) else { return Ok(hashes) };
        hashes.try_reserve_exact(depth / self.config.page_size).map_err(NoMemory::from)?;
        self.hash_path(run, depth)?;
        for run in self.path(run)? {
            let digests = self.digests_of(run);
            let pages = (depth - self.runs[run].start()) / self.config.page_size;
            hashes.extend_from_slice(&digests[..pages.min(digests.len())]);
        }
        Ok(hashes)
    }

    /// The digest of the page that ends at `depth`, or at depth 0 the seed of the namespace.
    pub fn digest_at(&mut self, run: u32, depth: usize) -> Result<Option<Digest>, NoMemory> {
        if depth == 0 {
            return Ok(self.spaces[self.details[run].space].seed);
        }
        self.hash_path(run, depth)?;
        let pages = (depth - self.runs[run].start()) / self.config.page_size;
        Ok(Some(self.digests_of(run)[pages - 1]))
    }

    /// The digests of pages that are not in the tree yet.
    pub fn hash_new(&self, tokens: &[u32], before: Option<Digest>) -> Result<Vec<Digest>, NoMemory> {
        let (page, overlap) = (self.config.page_size, self.config.overlap());
        let mut digests = Vec::new();
        digests.try_reserve_exact((tokens.len() - overlap) / page)?;
        hash_pages(tokens, page, overlap, before, &mut digests);
        Ok(digests)
    }

    pub fn keep_digests(&mut self, run: u32, digests: Vec<Digest>) {
        self.digest_count += digests.len();
        self.details[run].digests = self.digests.insert(digests.into());
    }

    /// Sees to it that all pages down to `depth` have their digests. O(pages that have none + runs that get some).
    fn hash_path(&mut self, last: u32, depth: usize) -> Result<(), NoMemory> {
        let (page, overlap) = (self.config.page_size, self.config.overlap());
        // Up to the first run that is complete.
        let mut incomplete = Vec::new();
        let mut run = last;
        while !self.runs[run].is_root() {
            let needed = (depth.min(self.runs[run].end()) - self.runs[run].start()) / page;
            if self.digests_of(run).len() >= needed {
                break;
            }
            incomplete.try_reserve(1)?;
            incomplete.push((run, needed));
            run = self.runs[run].parent;
        }
        self.digests.reserve(incomplete.len())?;
        for (run, needed) in incomplete.into_iter().rev() {
            let parent = self.runs[run].parent;
            if self.details[run].digests == NIL {
                self.details[run].digests = self.digests.insert(Digests::default());
            }
            let id = self.details[run].digests;
            let mut digests = std::mem::take(&mut self.digests[id].list);
            let known = digests.len();
            let room = digests.try_reserve_exact(needed - known);
            if room.is_ok() {
                let before = match digests.last() {
                    Some(&digest) => Some(digest),
                    None if self.runs[parent].is_root() => self.spaces[self.details[run].space].seed,
                    None => self.digests_of(parent).last().copied(),
                };
                let tokens = self.tokens(run);
                hash_pages(&tokens[known * page..needed * page + overlap], page, overlap, before, &mut digests);
                self.digest_count += needed - known;
            }
            self.digests[id].list = digests;
            room?;
        }
        Ok(())
    }

    pub fn digests_of(&self, run: u32) -> &[Digest] {
        let id = self.details[run].digests;
        if id == NIL { &[] } else { &self.digests[id].list }
    }

    /// Those below the first `pages` pages.
    pub fn copy_digests(&self, run: u32, pages: usize) -> Result<Vec<Digest>, NoMemory> {
        let below = self.digests_of(run).get(pages..).unwrap_or_default();
        let mut copy = Vec::new();
        copy.try_reserve_exact(below.len())?;
        copy.extend_from_slice(below);
        Ok(copy)
    }

    /// Gives the digests of the first `pages` pages to the upper part of a split; `below` are the others.
    pub fn split_digests(&mut self, lower: u32, upper: u32, pages: usize, below: Vec<Digest>) {
        let id = self.details[lower].digests;
        if id == NIL {
            return;
        }
        self.digests[id].list.truncate(pages);
        self.details[upper].digests = id;
        self.details[lower].digests = if below.is_empty() { NIL } else { self.digests.insert(below.into()) };
    }

    /// Room for merging the digests of `lower` and of the runs above it, which come from the lowest to the highest.
    pub fn reserve_merged_digests(&mut self, uppers: &[u32], lower: u32) -> Result<(), NoMemory> {
        let mut more = self.digests_of(lower).len();
        for &upper in uppers {
            let above = self.details[upper].digests;
            if more > 0 {
                self.digests[above].list.try_reserve(more)?;
            }
            more += self.digests_of(upper).len();
        }
        Ok(())
    }

    /// Puts the digests of the upper run, which is going, before those of the lower one.
    pub fn merge_digests(&mut self, upper: u32, lower: u32) {
        let above = std::mem::replace(&mut self.details[upper].digests, NIL);
        if above == NIL {
            return;
        }
        let below = std::mem::replace(&mut self.details[lower].digests, above);
        if below != NIL {
            let below = self.digests.remove(below);
            self.digests[above].list.extend_from_slice(&below.list);
        }
    }

    /// Keeps the digests of the pages of the first `units` units.
    pub fn cut_digests(&mut self, run: u32, units: usize) {
        let id = self.details[run].digests;
        if id == NIL {
            return;
        }
        let pages = units / self.config.page_size;
        let list = &mut self.digests[id].list;
        self.digest_count -= list.len().saturating_sub(pages);
        if pages == 0 {
            self.digests.remove(id);
            self.details[run].digests = NIL;
        } else {
            list.truncate(pages);
        }
    }

    /// The runs from the first one below the root down to `run`.
    pub fn path(&self, run: u32) -> Result<Vec<u32>, NoMemory> {
        let mut path = Vec::new();
        let mut at = run;
        while !self.runs[at].is_root() {
            path.try_reserve(1)?;
            path.push(at);
            at = self.runs[at].parent;
        }
        path.reverse();
        Ok(path)
    }
}

//! Ways from (parent, first page) to the child.

use std::collections::HashMap;
use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::common::Random;
use super::common::linear::Linear;
use super::hashes::{FoldFast, FoldQuality, FoldWritten, PageHash, Sip};

pub type Lookup = Box<dyn Fn(&Tree, u32, &[u32]) -> Option<u32>>;

/// About as large as a run of the crate, so that caches hold as many.
pub struct Run {
    pub hash: u64,
    pub parent: u32,
    /// Where its tokens begin.
    at: u32,
    /// The next child of its parent, or NIL.
    sibling: u32,
    _rest: [u64; 8],
}

const NIL: u32 = u32::MAX;

pub struct Tree {
    pub page: usize,
    pub runs: Vec<Run>,
    pub hasher: FoldQuality,
    tokens: Vec<u32>,
    /// The first child of each parent.
    firsts: Vec<u32>,
}

impl Tree {
    /// `count` runs of one page each, in equal parts below `parents` others. Siblings differ in their last token.
    pub fn new(page: usize, parents: usize, count: usize) -> Self {
        let hasher = FoldQuality::default();
        let mut tree = Tree { page, hasher, runs: Vec::new(), tokens: Vec::new(), firsts: vec![NIL; parents] };
        let each = count / parents;
        let first = Random(5).token();
        // Spans lie in the order of the inserts, which has nothing to do with that of the runs.
        let places = Random(5).shuffled(count);
        tree.tokens = vec![first; count * page];
        for (id, place) in places.into_iter().enumerate() {
            let (parent, at) = ((id / each) as u32, place * page);
            tree.tokens[at + page - 1] = (id % each) as u32;
            let hash = tree.hasher.hash(parent, &tree.tokens[at..at + page]);
            let sibling = std::mem::replace(&mut tree.firsts[parent as usize], id as u32);
            tree.runs.push(Run { hash, parent, at: at as u32, sibling, _rest: [0; 8] });
        }
        tree
    }

    pub fn page(&self, id: u32) -> &[u32] {
        let at = self.runs[id as usize].at as usize;
        &self.tokens[at..at + self.page]
    }

    pub fn table(&self) -> HashTable<u32> {
        let mut table = HashTable::new();
        for id in 0..self.runs.len() as u32 {
            table.insert_unique(self.runs[id as usize].hash, id, |&id| self.runs[id as usize].hash);
        }
        table
    }
}

/// hashbrown with ids alone: the hash is kept with the run.
fn kept(tree: &Tree) -> Lookup {
    let table = tree.table();
    Box::new(move |tree, parent, page| {
        let hash = tree.hasher.hash(parent, page);
        let is_it = |&id: &u32| {
            let run = &tree.runs[id as usize];
            run.hash == hash && run.parent == parent && tree.page(id) == page
        };
        table.find(hash, is_it).copied()
    })
}

/// The upper half of the hash stands beside the id, so that a run is read only if it is the one.
fn beside<H: PageHash + 'static>(tree: &Tree) -> Lookup {
    let hasher = H::default();
    let mut table = HashTable::new();
    for id in 0..tree.runs.len() as u32 {
        let hash = hasher.hash(tree.runs[id as usize].parent, tree.page(id));
        let again = |&(_, id): &(u32, u32)| hasher.hash(tree.runs[id as usize].parent, tree.page(id));
        table.insert_unique(hash, ((hash >> 32) as u32, id), again);
    }
    Box::new(move |tree, parent, page| {
        let hash = hasher.hash(parent, page);
        let is_it = |&(upper, id): &(u32, u32)| {
            upper == (hash >> 32) as u32 && tree.runs[id as usize].parent == parent && tree.page(id) == page
        };
        table.find(hash, is_it).map(|&(_, id)| id)
    })
}

/// As the crate has it.
fn linear(tree: &Tree) -> Lookup {
    let hasher = FoldWritten::default();
    let hash = |id: u32| hasher.hash(tree.runs[id as usize].parent, tree.page(id));
    let table = Linear::new(tree.runs.len(), (0..tree.runs.len() as u32).map(|id| (hash(id), id)));
    Box::new(move |tree, parent, page| {
        let is_it = |id: u32| tree.runs[id as usize].parent == parent && tree.page(id) == page;
        Some(table.find(hasher.hash(parent, page), is_it)).filter(|&id| id != NIL)
    })
}

/// A map a node, with a copy of each child's first page.
fn map_a_node<S: BuildHasher + Default + 'static>(tree: &Tree) -> Lookup {
    let mut maps: Vec<HashMap<Box<[u32]>, u32, S>> = Vec::new();
    maps.resize_with(tree.firsts.len(), HashMap::default);
    for (id, run) in tree.runs.iter().enumerate() {
        maps[run.parent as usize].insert(tree.page(id as u32).into(), id as u32);
    }
    Box::new(move |_, parent, page| maps[parent as usize].get(page).copied())
}

/// From sibling to sibling.
fn list(tree: &Tree, parent: u32, page: &[u32]) -> Option<u32> {
    let mut id = tree.firsts[parent as usize];
    while id != NIL {
        if tree.page(id) == page {
            return Some(id);
        }
        id = tree.runs[id as usize].sibling;
    }
    None
}

/// By name; each is made for one tree.
pub type Makers<const N: usize> = [(&'static str, fn(&Tree) -> Lookup); N];

pub const WAYS: Makers<8> = [
    ("map a node, owned pages, SipHash", map_a_node::<std::hash::RandomState>),
    ("map a node, owned pages, foldhash", map_a_node::<foldhash::quality::RandomState>),
    ("one table, SipHash", beside::<Sip>),
    ("one table, foldhash, hash in the run", kept),
    ("one table, foldhash, half of the hash in the table", beside::<FoldQuality>),
    ("the same, page written as bytes", beside::<FoldWritten>),
    ("the same, foldhash (fast)", beside::<FoldFast>),
    ("one table of linear probing, page written as bytes", linear),
];

/// For parents with few children.
pub const SIBLINGS: Makers<1> = [("list of siblings", |_| Box::new(list))];

//! Tokens and slots of many leaves: in generations of bump-allocated memory, or in blocks of the heap.

use _triradix_rust::core::Key;
use _triradix_rust::core::parts::{Slots, Spans, Window};

pub const SLOTS_OF_A_LEAF: usize = 16;

pub trait Store: Default {
    const NAME: &str;

    fn push(&mut self, tokens: &[u32], slots: &[i64]);
    /// The leaf goes, another takes its place.
    fn replace(&mut self, at: usize, tokens: &[u32], slots: &[i64]);
    fn get(&self, at: usize) -> (&[u32], &[i64]);
}

/// The crate's. A generation that is mostly dead is copied out, which takes a list of who has a window in it.
pub struct Generations {
    spans: Spans,
    leaves: Vec<Window>,
    members: Vec<Vec<u32>>,
    /// The generations that were stored to last: new spans and copied ones.
    filling: [u32; 2],
}

impl Default for Generations {
    fn default() -> Self {
        Generations {
            spans: Spans::new(0, 256 << 10),
            leaves: Vec::new(),
            members: Vec::new(),
            filling: [super::NIL; 2],
        }
    }
}

impl Generations {
    fn join(&mut self, leaf: u32, generation: u32, copied: bool) {
        if self.members.len() <= generation as usize {
            self.members.resize_with(generation as usize + 1, Vec::new);
        }
        let members = &mut self.members[generation as usize];
        let filling = &mut self.filling[usize::from(copied)];
        if std::mem::replace(filling, generation) != generation {
            // One of before may have had the same id.
            members.clear();
        }
        members.push(leaf);
    }

    fn copy_out(&mut self, generation: u32) {
        for leaf in std::mem::take(&mut self.members[generation as usize]) {
            if self.leaves[leaf as usize].generation() == generation {
                let window = [self.leaves[leaf as usize]];
                let copy = self.spans.store_joined(window.into_iter(), true).expect("there is memory for a benchmark");
                self.join(leaf, copy.generation(), true);
                let old = std::mem::replace(&mut self.leaves[leaf as usize], copy);
                self.spans.free(old);
            }
        }
    }
}

impl Store for Generations {
    const NAME: &str = "generations (the crate's)";

    fn push(&mut self, tokens: &[u32], slots: &[i64]) {
        let window = self.spans.store(Key::Narrow(tokens), slots).expect("there is memory for a benchmark");
        self.join(self.leaves.len() as u32, window.generation(), false);
        self.leaves.push(window);
    }

    fn replace(&mut self, at: usize, tokens: &[u32], slots: &[i64]) {
        let window = self.spans.store(Key::Narrow(tokens), slots).expect("there is memory for a benchmark");
        self.join(at as u32, window.generation(), false);
        let old = std::mem::replace(&mut self.leaves[at], window);
        self.spans.free(old);
        if let Some(sparse) = self.spans.take_sparse() {
            self.copy_out(sparse);
        }
    }

    fn get(&self, at: usize) -> (&[u32], &[i64]) {
        let Slots::Wide(slots) = self.spans.slots(&self.leaves[at]) else {
            panic!("the slots of this benchmark take 8 bytes, as in the alternatives")
        };
        (self.spans.tokens(&self.leaves[at]), slots)
    }
}

/// A Vec for the tokens, one for the slots.
#[derive(Default)]
pub struct Vecs {
    leaves: Vec<(Vec<u32>, Vec<i64>)>,
}

impl Store for Vecs {
    const NAME: &str = "two Vecs a run";

    fn push(&mut self, tokens: &[u32], slots: &[i64]) {
        self.leaves.push((tokens.to_vec(), slots.to_vec()));
    }

    fn replace(&mut self, at: usize, tokens: &[u32], slots: &[i64]) {
        self.leaves[at] = (tokens.to_vec(), slots.to_vec());
    }

    fn get(&self, at: usize) -> (&[u32], &[i64]) {
        (&self.leaves[at].0, &self.leaves[at].1)
    }
}

/// One block for both: the slots, then the tokens.
#[derive(Default)]
pub struct Blocks {
    leaves: Vec<(Box<[i64]>, u32)>,
}

fn block(tokens: &[u32], slots: &[i64]) -> (Box<[i64]>, u32) {
    let mut words = Vec::with_capacity(slots.len() + tokens.len().div_ceil(2));
    words.extend_from_slice(slots);
    let pairs = tokens.chunks(2).map(|pair| i64::from(pair[0]) | i64::from(*pair.get(1).unwrap_or(&0)) << 32);
    words.extend(pairs);
    (words.into_boxed_slice(), slots.len() as u32)
}

impl Store for Blocks {
    const NAME: &str = "one block a run";

    fn push(&mut self, tokens: &[u32], slots: &[i64]) {
        self.leaves.push(block(tokens, slots));
    }

    fn replace(&mut self, at: usize, tokens: &[u32], slots: &[i64]) {
        self.leaves[at] = block(tokens, slots);
    }

    fn get(&self, at: usize) -> (&[u32], &[i64]) {
        let (words, len) = &self.leaves[at];
        let (slots, tokens) = words.split_at(*len as usize);
        // SAFETY: any i64 is two u32, in the order in which `block` puts them on a little-endian machine.
        (&unsafe { tokens.align_to::<u32>().1 }[..*len as usize], slots)
    }
}

//! Paths of nested nodes: ids into one slab, owned boxes, or counted references.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::NIL;
use _triradix_rust::core::parts::{Entry, Slab};

pub const LEVELS: usize = 64;

/// `chains` paths of LEVELS nodes. A tree grows in breadth: all nodes of a level are made before those of the next, so
/// that neighbours on a path are no neighbours in memory.
pub trait Forest {
    const NAME: &str;

    fn new(chains: usize) -> Self;
    /// From the top of a path to its end: the sum of what the nodes hold.
    fn walk(&self, chain: usize) -> usize;
}

/// What a run has besides its links.
#[derive(Default)]
struct Rest {
    start: usize,
    _more: [u64; 8],
}

impl Rest {
    fn new(start: usize) -> Self {
        Rest { start, _more: [1; 8] }
    }
}

struct SlabNode {
    _parent: u32,
    child: u32,
    rest: Rest,
}

impl Default for SlabNode {
    fn default() -> Self {
        SlabNode { _parent: NIL, child: NIL, rest: Rest::default() }
    }
}

impl Entry for SlabNode {
    fn link(&mut self) -> &mut u32 {
        &mut self.child
    }
}

pub struct Slabbed {
    nodes: Slab<SlabNode>,
    tops: Vec<u32>,
}

impl Forest for Slabbed {
    const NAME: &str = "slab, u32 ids (the crate's)";

    fn new(chains: usize) -> Self {
        let mut nodes = Slab::new();
        let mut ends = vec![NIL; chains];
        let mut tops = Vec::new();
        for level in 0..LEVELS {
            for end in &mut ends {
                nodes.reserve(1).expect("there is memory for a benchmark");
                let id = nodes.insert(SlabNode { _parent: *end, child: NIL, rest: Rest::new(level) });
                match *end {
                    NIL => tops.push(id),
                    parent => nodes[parent].child = id,
                }
                *end = id;
            }
        }
        Slabbed { nodes, tops }
    }

    fn walk(&self, chain: usize) -> usize {
        let (mut id, mut sum) = (self.tops[chain], 0);
        while id != NIL {
            sum += self.nodes[id].rest.start;
            id = self.nodes[id].child;
        }
        sum
    }
}

struct BoxNode {
    child: Option<Box<BoxNode>>,
    rest: Rest,
}

/// No way up: that would take raw pointers.
pub struct Boxed {
    tops: Vec<Option<Box<BoxNode>>>,
}

impl Forest for Boxed {
    const NAME: &str = "Box";

    fn new(chains: usize) -> Self {
        let mut tops: Vec<Option<Box<BoxNode>>> = Vec::new();
        tops.resize_with(chains, || None);
        let mut places: Vec<&mut Option<Box<BoxNode>>> = tops.iter_mut().collect();
        for level in 0..LEVELS {
            let node = || Box::new(BoxNode { child: None, rest: Rest::new(level) });
            places = places.into_iter().map(|place| &mut place.insert(node()).child).collect();
        }
        Boxed { tops }
    }

    fn walk(&self, chain: usize) -> usize {
        let (mut next, mut sum) = (&self.tops[chain], 0);
        while let Some(node) = next {
            sum += node.rest.start;
            next = &node.child;
        }
        sum
    }
}

struct RcNode {
    _parent: Weak<RcNode>,
    child: RefCell<Option<Rc<RcNode>>>,
    rest: Rest,
}

pub struct Counted {
    tops: Vec<Rc<RcNode>>,
}

impl Forest for Counted {
    const NAME: &str = "Rc, and Weak to the parent";

    fn new(chains: usize) -> Self {
        let node = |_parent, level| Rc::new(RcNode { _parent, child: RefCell::new(None), rest: Rest::new(level) });
        let tops: Vec<Rc<RcNode>> = (0..chains).map(|_| node(Weak::new(), 0)).collect();
        let mut ends = tops.clone();
        for level in 1..LEVELS {
            for end in &mut ends {
                let child = node(Rc::downgrade(end), level);
                *end.child.borrow_mut() = Some(Rc::clone(&child));
                *end = child;
            }
        }
        Counted { tops }
    }

    /// Holds each node that it reads, as whoever may change the tree meanwhile must.
    fn walk(&self, chain: usize) -> usize {
        let (mut next, mut sum) = (Some(Rc::clone(&self.tops[chain])), 0);
        while let Some(node) = next {
            sum += node.rest.start;
            next = node.child.borrow().clone();
        }
        sum
    }
}

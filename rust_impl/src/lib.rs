//! The Rust tree of triradix: `core` is the tree, which knows nothing of Python; `binding` shows it to Python.

mod binding;
pub mod core;

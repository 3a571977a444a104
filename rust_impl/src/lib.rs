//! The Rust tree of triradix: `core` is the tree, which knows nothing of Python; `binding` shows it to Python.
//!
//! `unsafe` is only where a `mod` line allows it. Each of those modules begins with the obligations that its uses rest
//! on (O1, O2, …), and each use names its own; `core/tests/obligations.rs` and clippy keep it so.

#![deny(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    clippy::missing_safety_doc
)]

mod binding;
pub mod core;
mod sync;

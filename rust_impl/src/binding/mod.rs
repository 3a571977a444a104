//! The tree as Python classes: arguments in, results out. Nothing here touches a Python object, or needs the GIL, while
//! it holds the lock of a tree.

mod arguments;
#[allow(unsafe_code)]
mod arrays;
mod batch;
#[allow(unsafe_code)]
mod buffer;
mod built;
mod cache;
#[allow(unsafe_code)]
mod digits;
mod errors;
mod events;
#[allow(unsafe_code)]
mod exclusive;
// In the extension alone, which is linked for it.
#[cfg(all(target_os = "linux", target_env = "gnu", not(test)))]
#[allow(unsafe_code)]
mod exit;
#[allow(unsafe_code)]
mod fork;
mod gil;
#[allow(unsafe_code)]
mod kept;
#[allow(unsafe_code)]
mod keys;
mod log;
mod memo;
#[cfg(test)]
mod models;
mod nodes;
#[allow(unsafe_code)]
mod objects;
#[allow(unsafe_code)]
mod pool;
#[allow(unsafe_code)]
mod results;
mod shared;

use pyo3::prelude::*;

/// Private: `triradix.rust_impl` shows it to the world.
#[pymodule(gil_used = true)]
mod _triradix_rust {
    use pyo3::prelude::*;

    /// NumPy is found now: where there is no memory for that later, the `numpy` crate would panic.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::binding::built::refuse_other_versions(module.py())?;
        crate::binding::digits::refuse_other_digits(module.py())?;
        crate::binding::results::refuse_other_layouts(module.py())?;
        crate::binding::shared::shared(module.py())?;
        crate::binding::memo::prepare(module.py());
        crate::binding::keys::tokens_name(module.py());
        crate::binding::arrays::copied(module.py(), &[]).map(drop)
    }

    #[pymodule_export]
    use super::built::build_info;
    #[pymodule_export]
    use super::cache::RadixCache;
    #[pymodule_export]
    use super::fork::{after_fork, before_fork};
    #[pymodule_export]
    use super::log::listen;
    #[pymodule_export]
    use super::nodes::Node;
    #[pymodule_export]
    use super::results::{BatchMatchResult, EvictResult, InsertResult, MatchResult};
}

"""The Rust implementation: `RadixCache`, compiled from this folder into the private module ``_triradix_rust``."""

import os

from triradix import log as _log
from triradix import results as _results
from triradix import versions as _versions

try:
    import _triradix_rust as _compiled
except ModuleNotFoundError as error:
    if error.name != "_triradix_rust":
        raise
    raise ImportError(
        "the Rust implementation is not built: run `pip install ./rust_impl` (or `make build`) in the repository; "
        "it needs cargo"
    ) from None

_versions.require_same("rust", _compiled.build_info()["version"] if hasattr(_compiled, "build_info") else None)

try:
    from _triradix_rust import (
        BatchMatchResult,
        EvictResult,
        InsertResult,
        MatchResult,
        Node,
        RadixCache,
        after_fork,
        before_fork,
        build_info,
        listen,
    )
except ImportError as error:
    raise ImportError(f"the rust tree was built from other sources ({error}): {_versions.reinstall('rust')}") from error

__all__ = ["BatchMatchResult", "EvictResult", "InsertResult", "MatchResult", "Node", "RadixCache", "build_info"]

for _own in (BatchMatchResult, EvictResult, InsertResult, MatchResult, Node):
    getattr(_results, _own.__name__).register(_own)

_log.listen("rust", listen)
os.register_at_fork(before=before_fork, after_in_parent=after_fork, after_in_child=after_fork)

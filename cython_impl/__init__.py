"""The Cython tree: C structs in slabs, no Python objects inside."""

from triradix import results as _types
from triradix import versions as _versions

try:
    from triradix.cython_impl.built import build_info

    _versions.require_same("cython", build_info()["version"])
    from triradix.cython_impl.cache import RadixCache
    from triradix.cython_impl.results import BatchMatchResult, EvictResult, InsertResult, MatchResult, Node
except _versions.OtherVersionError:
    raise
except ImportError as error:
    raise ImportError(
        f"the Cython implementation cannot be imported ({error}); to build it, run `pip install .` or `make build` "
        "in a checkout of triradix"
    ) from error

_types.Node.register(Node)
_types.MatchResult.register(MatchResult)
_types.BatchMatchResult.register(BatchMatchResult)
_types.InsertResult.register(InsertResult)
_types.EvictResult.register(EvictResult)

__all__ = ["BatchMatchResult", "EvictResult", "InsertResult", "MatchResult", "Node", "RadixCache", "build_info"]

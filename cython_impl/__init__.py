"""The Cython tree: C structs in slabs, no Python objects inside."""

try:
    from triradix.cython_impl.cache import RadixCache
    from triradix.cython_impl.results import BatchMatchResult, EvictResult, InsertResult, MatchResult, Node
except ImportError as error:
    raise ImportError(
        f"the Cython implementation cannot be imported ({error}); to build it, run `pip install .` or `make build` in a checkout of triradix"
    ) from error

from triradix import results

for abstract, concrete in (
    (results.Node, Node),
    (results.MatchResult, MatchResult),
    (results.BatchMatchResult, BatchMatchResult),
    (results.InsertResult, InsertResult),
    (results.EvictResult, EvictResult),
):
    abstract.register(concrete)
del abstract, concrete

__all__ = ["BatchMatchResult", "EvictResult", "InsertResult", "MatchResult", "Node", "RadixCache"]

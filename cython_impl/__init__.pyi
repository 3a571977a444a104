from triradix.cython_impl.cache import RadixCache
from triradix.cython_impl.results import BatchMatchResult, EvictResult, InsertResult, MatchResult, Node

__all__ = ["BatchMatchResult", "EvictResult", "InsertResult", "MatchResult", "Node", "RadixCache", "build_info"]

def build_info() -> dict[str, str]: ...

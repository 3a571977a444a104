"""Interchangeable radix trees for the prefix cache of LLM engines: plain Python, Cython and Rust behind one protocol.

>>> import triradix
>>> cache = triradix.create("reference")
>>> cache.insert([1, 2, 3], [10, 11, 12]).length
3
>>> cache.match_prefix([1, 2, 9]).indices
array([10, 11])
"""

import triradix.interpreter  # noqa: F401  # first: it may refuse
from triradix.errors import IntegrityError, StaleNodeError
from triradix.events import AllBlocksCleared, BlockRemoved, BlockStored
from triradix.implementations import IMPLEMENTATIONS, create
from triradix.keys import PrefixKey
from triradix.protocol import PrefixCache
from triradix.results import BatchMatchResult, EvictResult, InsertResult, MatchResult, Node

__all__ = [
    "IMPLEMENTATIONS",
    "AllBlocksCleared",
    "BatchMatchResult",
    "BlockRemoved",
    "BlockStored",
    "EvictResult",
    "InsertResult",
    "IntegrityError",
    "MatchResult",
    "Node",
    "PrefixCache",
    "PrefixKey",
    "StaleNodeError",
    "create",
]

__version__ = "0.1.0"

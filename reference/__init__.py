"""The prefix cache in plain Python: the one to read first. `docs/DESIGN.md` says what the words mean.

Read `span`, `marks`, `births` and `node` for what the tree is made of; then `tree`, `eviction` and `locks` for what it
does; then `cache` for how a caller gets there. `undo` and `exclusive` say what holds when something raises, and with
threads; `hashing` and `events` stand aside; `check` lists every invariant.
"""

from triradix.reference.built import build_info
from triradix.reference.cache import RadixCache

__all__ = ["RadixCache", "build_info"]

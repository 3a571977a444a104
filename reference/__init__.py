"""The prefix cache in plain Python: the one to read first. `docs/DESIGN.md` says what the words mean."""

from triradix.reference.cache import RadixCache

__all__ = ["RadixCache"]

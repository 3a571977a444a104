"""Block digests: SHA-256(digest of the page before ‖ the page's units), as SGLang stores them.

A run keeps the digests of its first pages once somebody asked; they are split, merged and cut with it. So asking costs
the pages not hashed yet, and with events off and nobody asking nothing is computed.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from triradix.arguments import DEFAULT_NAMESPACE, Namespace
from triradix.reference.span import WORD, Units

if TYPE_CHECKING:
    from triradix.reference.node import Run
    from triradix.reference.tree import Tree


def seed(namespace: Namespace) -> bytes:
    """What stands before the first page: it keeps namespaces apart."""
    if namespace == DEFAULT_NAMESPACE:
        return b""
    parts = [b"sglang-cache-namespace-v1"]
    for part in namespace:
        if part is None:
            parts.append(b"\0")
        else:
            text = part.encode()
            parts += (b"\1", len(text).to_bytes(8, "little"), text)
    return sha256(b"".join(parts)).digest()


def hash_until(tree: Tree, run: Run, depth: int) -> None:
    """See that every page of the path down to ``depth``, a page of ``run``, has its digest kept.

    O(pages not hashed yet, and the runs that they stand in).
    """
    waiting = [(run, depth)]
    above = run.parent
    while above is not None and not above.is_root and len(above.digests) * tree.page_size < above.end - above.start:
        waiting.append((above, above.end))
        above = above.parent
    before = above.digests[-1] if above is not None and not above.is_root else seed(run.space.namespace)
    for part, end in reversed(waiting):
        known, wanted = part.digests, (end - part.start) // tree.page_size
        if len(known) < wanted:
            tree.undo.keep(part)
            tree.undo.keep(tree.counts)
            last = known[-1] if known else before
            part.digests = known + _hash_pages(part.span, part.start, len(known), wanted, last, tree.page_size)
            tree.counts.digests += wanted - len(known)
        before = part.digests[-1]


def path_digests(tree: Tree, run: Run, depth: int) -> list[bytes]:
    """The digest of each page of the path down to ``depth``, a page of ``run``."""
    if not run.is_root:
        hash_until(tree, run, depth)
    digests: list[bytes] = []
    for part in run.path():
        digests += part.digests[: (depth - part.start) // tree.page_size]
    return digests


def event_hash(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big", signed=True)


def _hash_pages(units: Units, start: int, first: int, last: int, before: bytes, page_size: int) -> tuple[bytes, ...]:
    """The digests of the pages ``first`` to ``last`` (counted from ``start``)."""
    words = units.between(start + first * page_size, start + last * page_size)
    if units.overlap:
        tokens = np.frombuffer(words, np.uint32)
        words = np.stack((tokens[:-1], tokens[1:]), axis=1).tobytes()
    size = page_size * WORD * (1 + units.overlap)
    digests = []
    for at in range(0, len(words), size):
        before = sha256(before + words[at : at + size]).digest()
        digests.append(before)
    return tuple(digests)

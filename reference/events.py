"""KV events: telling an index outside which pages came and went."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from triradix.arguments import DEFAULT_NAMESPACE
from triradix.events import BlockRemoved, BlockStored
from triradix.reference.hashing import event_hash, hash_until

if TYPE_CHECKING:
    from triradix.reference.node import Run
    from triradix.reference.tree import Tree


def stored(tree: Tree, run: Run, above: int, depth: int) -> BlockStored:
    """An insert made the pages (above, depth], the last ones of ``run``. O(new pages)."""
    hash_until(tree, run, depth)
    new = run.digests[(above - run.start) // tree.page_size :]
    before = _digest_above(tree, run, above)
    tokens = np.frombuffer(run.span.between(above, depth), np.uint32).tolist()
    namespace = run.space.namespace
    return BlockStored(
        block_hashes=[event_hash(digest) for digest in new],
        parent_block_hash=None if before is None else event_hash(before),
        token_ids=list(pairwise(tokens)) if tree.overlap else tokens,
        block_size=tree.page_size,
        extra_key=None if namespace == DEFAULT_NAMESPACE else namespace,
    )


def removed(digests: list[bytes]) -> BlockRemoved:
    """An evict freed pages with these digests, in this order."""
    return BlockRemoved([event_hash(digest) for digest in digests])


def _digest_above(tree: Tree, run: Run, depth: int) -> bytes | None:
    """The digest of the page that ends at ``depth``; None for the root."""
    if depth > run.start:
        return run.digests[(depth - run.start) // tree.page_size - 1]
    return run.parent.digests[-1] if run.parent is not None and run.parent.digests else None

"""The order of ``--schedule-policy dfs-weight``: waiting requests that share a prefix next to each other.

SGLang walks its own tree for it. Here the branches are found from the paths of the requests' nodes: the runs of a tree
are its own affair, and only branches between waiting requests matter for the order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Path = npt.NDArray[np.int64]


class _Branch:
    __slots__ = ("children", "depth", "own", "weight")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.own: list[int] = []
        self.children: list[_Branch] = []
        self.weight = 0


def depth_first(paths: Sequence[Path]) -> list[int]:
    """Indices of ``paths``: heavier subtrees (more of the paths) first, and within one the deeper before its ancestor.

    ``paths``: one array for each request; equal beginnings mean equal nodes. O(total length) beside the sorting.
    """
    root = _Branch(0)
    trail = [root]  # from the root to the last path
    before = np.empty(0, dtype=np.int64)
    # Bytes of the biggest end first sort as the numbers do, and an ancestor before what is below it.
    for index in sorted(range(len(paths)), key=lambda i: paths[i].astype(">i8").tobytes()):
        path = paths[index]
        common = _common(before, path)
        cut = trail[-1].depth > common
        while trail[-1].depth > common:
            trail.pop()
        if trail[-1].depth < common:
            fork = _Branch(common)
            if cut:
                # The trail is the last branch of each level.
                fork.children.append(trail[-1].children.pop())
            trail[-1].children.append(fork)
            trail.append(fork)
        if trail[-1].depth < len(path):
            leaf = _Branch(len(path))
            trail[-1].children.append(leaf)
            trail.append(leaf)
        trail[-1].own.append(index)
        before = path
    return _emit(root)


def _common(one: Path, other: Path) -> int:
    shorter = min(len(one), len(other))
    differs = one[:shorter] != other[:shorter]
    return int(differs.argmax()) if differs.any() else shorter


def _emit(root: _Branch) -> list[int]:
    preorder = [root]
    for branch in preorder:
        preorder.extend(branch.children)
    for branch in reversed(preorder):
        branch.weight = len(branch.own) + sum(child.weight for child in branch.children)
    order: list[int] = []
    stack = [(root, False)]
    while stack:
        branch, done = stack.pop()
        if done:
            order.extend(sorted(branch.own))
            continue
        stack.append((branch, True))
        branch.children.sort(key=lambda child: -child.weight)
        stack.extend((child, False) for child in reversed(branch.children))
    return order

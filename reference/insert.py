"""Insert: what is there is refreshed, what is missing becomes one new run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triradix.arguments import INT64_MIN
from triradix.keys import Slots
from triradix.reference.births import Birth
from triradix.reference.events import stored
from triradix.reference.log import MADE, note
from triradix.reference.merge import merge_upwards
from triradix.reference.node import Run
from triradix.reference.span import Span, Units
from triradix.reference.split import split
from triradix.reference.walk import read, walk, write

if TYPE_CHECKING:
    from triradix.reference.tree import Tree


def insert(
    tree: Tree, run: Run, depth: int, key: Units, goal: int, slots: Slots, priority: int, inserted: int
) -> tuple[int, Birth | None]:
    """Cache ``key`` down to ``goal``; ``slots`` are those of its units.

    Returns the depth down to which it was cached already, and the birth of its last page (None: the root).
    """
    start = key.base
    run, depth = walk(tree, run, depth, key, goal)
    counts = tree.counts
    tree.undo.keep(counts)
    counts.clock += 1
    counts.inserts += 1
    counts.inserted_tokens += goal - depth
    hits = int(tree.hits_matter)
    if not tree.priorities_matter:
        priority = INT64_MIN
    if hits:
        # What an earlier chunk of the request inserted is no hit: the +1 at the end of the path is taken back there.
        chunk = min(depth, inserted - inserted % tree.page_size)
        if chunk > 0:
            write(tree, run.holder(chunk), chunk, hits=-1)
            run = run.holder(depth)
    if depth == goal and depth:
        if hits or tree.priorities_matter:
            write(tree, run, depth, priority, hits)
            run = run.holder(depth)
        return depth, read(tree, run, depth, counts.clock)
    if depth == goal:
        return depth, None
    if depth < run.end:
        run = split(tree, run, depth)
    span = Span(depth, key.between(depth, goal), tree.overlap, slots[depth - start : goal - start].copy())
    leaf = Run(run.space, run, depth, goal, span, counts.clock)
    leaf.last, leaf.priority, leaf.hits = counts.clock, priority, hits
    _hang(tree, run, leaf)
    if tree.keeps_events:
        tree.undo.keep_length(tree.events)
        tree.events.append(stored(tree, leaf, depth, goal))
    return depth, leaf.birth


def _hang(tree: Tree, parent: Run, leaf: Run) -> None:
    """Hang a new run below ``parent``, and join it with that if it is its only child."""
    if parent.is_root and not parent.children:
        tree.undo.keep_entry(tree.spaces, parent.space.namespace)
        tree.spaces[parent.space.namespace] = parent.space
    page = leaf.first_page(tree.page_size)
    tree.undo.append((parent.children.pop, page, None))
    tree.undo.append((tree.anchors.pop, leaf.birth, None))
    parent.children[page] = leaf
    tree.anchors[leaf.birth] = leaf
    counts = tree.counts
    counts.runs += 1
    counts.total += leaf.end - leaf.start
    tree.hold(leaf.span)
    note(tree.undo, MADE, leaf.end - leaf.start, leaf.start)
    merge_upwards(tree, leaf)
    tree.offer(leaf)

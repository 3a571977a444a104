"""What the trees tell about themselves: ``TRIRADIX_LOG=debug``, and to whom.

Silent unless asked. ``TRIRADIX_LOG`` is a level (off, error, warn, info, debug, trace), or levels of parts with commas
between: ``info,rust=debug,cython.eviction=trace``; the longer name counts. The lines go to stderr; with
``TRIRADIX_LOG_TO=logging`` they go to the loggers ``triradix.TREE.PART`` of Python's logging, whose levels then apply
too. `configure` does the same at run time. `KINDS` is all that is told. (What goes wrong is an exception, for the
caller; at the level error only what is the fault of a tree is told as well.)

A tree notes what it did while it does it, and hands the notes over after an insert, an eviction or a reset: no handler
runs in the middle of an operation. A match, which seldom has something to tell, leaves it to the next of those. What a
handler raises is dropped; only a KeyboardInterrupt or a SystemExit comes out of the call, which is done then.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TextIO

LEVELS = ("off", "error", "warn", "info", "debug", "trace")
OFF, ERROR, WARN, INFO, DEBUG, TRACE = range(6)

TREES = ("reference", "cython", "rust")


class Kind(NamedTuple):
    """Something that is told: how loud, by which part, and in which words. ``text`` has two numbers to fill in."""

    level: int
    part: str
    text: str


KINDS = (
    Kind(INFO, "tree", "reset: {0} units dropped"),
    Kind(DEBUG, "split", "split a run at depth {0}; {1} units stay below"),
    Kind(DEBUG, "merge", "merged {0} units with the {1} below them"),
    Kind(DEBUG, "eviction", "evicted {0} units; {1} are left"),
    Kind(DEBUG, "span", "copied {0} units out of memory for {1}"),
    Kind(TRACE, "node", "made a run of {0} units below depth {1}"),
    Kind(TRACE, "node", "gave back a run below depth {0}"),
    Kind(WARN, "eviction", "evicted {0} of the {1} units that were asked for: locks hold the rest"),
    Kind(ERROR, "check", "check() found a broken invariant, which its exception names"),
    Kind(ERROR, "tree", "an internal error, of which the exception says what it left"),
)
"""In the order of the bits by which a tree knows them."""

RESET, SPLIT, MERGE, EVICT, COPY, MADE, GONE, SHORT, BROKEN, FAILED = (1 << kind for kind in range(len(KINDS)))

PARTS = tuple(dict.fromkeys(kind.part for kind in KINDS))

_TO_LOGGING = {ERROR: logging.ERROR, WARN: logging.WARNING, INFO: logging.INFO, DEBUG: logging.DEBUG, TRACE: 5}

DONE = "triradix: the call that this comes out of is done; only its result is lost"

Note = tuple[int, int, int]
"""The bit of the kind, and two numbers."""

_listeners: dict[str, Callable[[int], None]] = {}


class _Settings(NamedTuple):
    """``levels``: by tree and part; empty until they are asked for."""

    levels: dict[str, dict[str, int]]
    to: Literal["stderr", "logging"]


_settings = _Settings({}, "stderr")


def configure(levels: str | None = None, to: str | None = None) -> None:
    """Set what is told and to whom; None: as the environment says (``TRIRADIX_LOG``, ``TRIRADIX_LOG_TO``).

    ValueError for a level, a part or a receiver that does not exist, TypeError for what is no str, and then nothing has
    changed.
    """
    global _settings
    for name, given in (("levels", levels), ("to", to)):
        if given is not None and not isinstance(given, str):
            raise TypeError(f"{name} must be a str or None, not {type(given).__name__}")
    wanted = os.environ.get("TRIRADIX_LOG", "") if levels is None else levels
    receiver = os.environ.get("TRIRADIX_LOG_TO") or "stderr" if to is None else to
    if receiver != "stderr" and receiver != "logging":
        raise ValueError(f"TRIRADIX_LOG_TO is {receiver!r}; allowed: stderr, logging")
    parsed = {tree: parse(wanted, tree) for tree in TREES}
    mine = None
    _settings = _Settings(parsed, "logging" if receiver == "logging" else "stderr")
    # No lock, which a signal handler might find taken: who sees that another thread came in between tells them again.
    while mine is not _settings:
        mine = _settings
        for tree, listener in list(_listeners.items()):
            listener(_mask(mine.levels[tree]))


def parse(text: str, tree: str) -> dict[str, int]:
    """The level of each part of ``tree`` under that ``TRIRADIX_LOG``. ValueError if it is unusable."""
    chosen: dict[str, int] = {}
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        name, given, level = (part.strip() for part in entry.rpartition("="))
        if level.lower() not in LEVELS:
            raise ValueError(f"TRIRADIX_LOG: {level!r} is no level; allowed: {', '.join(LEVELS)}")
        if given:
            owner, dot, part = name.partition(".")
            if owner not in TREES or (dot and part not in PARTS):
                raise ValueError(
                    f"TRIRADIX_LOG: nothing is called {name!r}; allowed: {', '.join(TREES)}, and of each the parts "
                    f"{', '.join(PARTS)}, such as {TREES[-1]}.{PARTS[0]}"
                )
        chosen[name] = LEVELS.index(level.lower())
    whole = chosen.get(tree, chosen.get("", OFF))
    return {part: chosen.get(f"{tree}.{part}", whole) for part in PARTS}


def listen(tree: str, listener: Callable[[int], None]) -> None:
    """For a tree that is being imported: ``listener`` is told now, and at each change, the bits of what to note."""
    if not _settings.levels:
        configure()
    _listeners[tree] = listener
    listener(_mask(_settings.levels[tree]))


def _mask(levels: dict[str, int]) -> int:
    return sum(1 << bit for bit, kind in enumerate(KINDS) if kind.level <= levels[kind.part])


def shown(tree: str) -> str:
    """What is told of ``tree``, such as ``off`` or ``debug (node trace)``. ValueError if TRIRADIX_LOG is unusable."""
    if not _settings.levels:
        configure()
    levels = _settings.levels[tree]
    counted = list(levels.values())
    usual = max(sorted(set(counted)), key=counted.count)
    others = ", ".join(f"{part} {LEVELS[level]}" for part, level in levels.items() if level != usual)
    return LEVELS[usual] + (f" ({others})" if others else "")


def tell(tree: str, notes: Sequence[Note]) -> None:
    """Hand over what a tree noted, if it is still asked for. What a handler or a closed stderr raises is dropped: a
    log changes no result.

    But for what is no Exception (KeyboardInterrupt, SystemExit): that is not ours to drop. It ends the telling, and
    comes out of the call as if it had come when that had just returned; `DONE` is among its notes, unless the call
    failed. Nothing is told any more when the interpreter ends: a thread that it has ended may keep a handler's lock.
    """
    for bit, first, second in notes:
        kind = KINDS[bit.bit_length() - 1]
        levels, to = _settings
        if sys.is_finalizing() or kind.level > levels[tree][kind.part]:
            continue  # or it was noted before it was asked for no more
        name, text = f"triradix.{tree}.{kind.part}", kind.text.format(first, second)
        try:
            if to == "logging":
                logging.getLogger(name).log(_TO_LOGGING[kind.level], "%s", text)
            elif sys.stderr is not None:
                now = time.strftime("%H:%M:%S")
                _write(sys.stderr, f"{now} {LEVELS[kind.level].upper():<5} {name}: {text}\n")
        except Exception:
            continue
        except BaseException as error:
            failed = any(bit == FAILED for bit, _, _ in notes)
            if sys.version_info >= (3, 11) and not failed and DONE not in getattr(error, "__notes__", ()):
                error.add_note(DONE)
            raise


def _write(stderr: TextIO, line: str) -> None:
    """In one piece, and past the buffer of Python's own: a daemon thread that ends in there keeps its lock, and Python,
    which wants that at its end, aborts.
    """
    if stderr is sys.__stderr__:
        os.write(stderr.fileno(), line.encode())
    else:
        stderr.write(line)

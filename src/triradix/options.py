"""What the commands have in common on the command line."""

from __future__ import annotations

import argparse

import triradix


def add_implementations(parser: argparse.ArgumentParser) -> None:
    """``--implementations NAMES``: each once, in any order; all of them by default."""
    parser.add_argument(
        "--implementations",
        type=_implementations,
        default=triradix.IMPLEMENTATIONS,
        metavar="NAMES",
        help=f"with commas between (default: {','.join(triradix.IMPLEMENTATIONS)})",
    )


def _implementations(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in triradix.IMPLEMENTATIONS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"unknown implementation {unknown[0]!r}; allowed: {', '.join(triradix.IMPLEMENTATIONS)}"
        )
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text} names an implementation twice")
    return names

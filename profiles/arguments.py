"""Numbers and paths of the command line: what cannot be used is one sentence, before anything is measured."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from math import isfinite
from pathlib import Path

from profiles.sampler import CannotRecord

MOST_A_SECOND = 1000
"""py-spy counts its looks, not the time: with more than it can do, a recording takes far longer than it should."""


def at_least_one(text: str) -> int:
    return _between(text, 1, 10**9)


def a_second(text: str) -> int:
    return _between(text, 1, MOST_A_SECOND)


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number") from None
    if not isfinite(number) or number < 0:
        raise ArgumentTypeError(f"{text} is not 0 or more")
    return number


def _between(text: str, low: int, high: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not an integer") from None
    if not low <= number <= high:
        raise ArgumentTypeError(f"{text} is not one of {low} … {high}")
    return number


def make_folder(path: Path) -> None:
    """CannotRecord if there can be no such folder."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRecord(f"the folder {path} cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK):
        raise CannotRecord(f"nothing can be written in the folder {path}")


def make_room(path: Path) -> None:
    """Make the folder that the file will stand in; CannotRecord if it cannot be written there."""
    if path.is_dir():
        raise CannotRecord(f"{path} cannot be written: it is a folder")
    make_folder(path.parent)


def a_python(text: str) -> str:
    """Not resolved: a venv's Python is a link, and the place of the link is what makes it the venv's."""
    path = Path(text).absolute()
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise ArgumentTypeError(f"{text} is no program")
    return str(path)

"""Files that are written whole or not at all: what stood there before stays until the new one is complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path


def put(path: Path, text: str) -> None:
    """Write ``text`` to the file. OSError if that cannot be: then the file is as it was.

    What is no plain file (a pipe, a device) is written to as it is.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        path.write_text(text, encoding="utf-8")
        return
    partial = _partial(target)
    try:
        partial.write_text(text, encoding="utf-8")
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def put_all(texts: Mapping[Path, str]) -> str | None:
    """`put` each; those that can be are written in any case. What is wrong with the first that cannot, or None."""
    wrong = None
    for path, text in texts.items():
        try:
            put(path, text)
        except OSError as error:
            wrong = wrong or sentence(path, error)
    return wrong


def make_room(path: Path) -> None:
    """Make the folder that the file will stand in. OSError if the file cannot be written there; it is left alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()
    if target.exists():
        with target.open("ab"):
            return
    partial = _partial(target)
    try:
        partial.touch()
    finally:
        partial.unlink(missing_ok=True)


def _partial(target: Path) -> Path:
    """Beside it, since only within a file system a file can take another's place."""
    return target.with_name(f".{target.name}.{os.getpid()}")


def sentence(path: Path, error: OSError) -> str:
    """Why ``path`` cannot be written."""
    where, target = Path(error.filename or path), path.resolve()
    if where not in (path, target, _partial(target)):
        return f"{where} cannot be made: {error.strerror}"
    return f"{path} cannot be written: {'it is a folder' if path.is_dir() else error.strerror}"

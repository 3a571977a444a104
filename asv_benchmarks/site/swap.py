"""A folder that is made whole or not at all, beside its place, and that replaces only what was made so."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from asv_benchmarks.site import CannotMake

MARKER = ".made-by-triradix"
"""In each folder that was made so: a line for people, then the paths of all that is in it."""

_SAID = "Made by `make site`, with all that is named here; the next `make site` replaces it."


@contextmanager
def fresh(place: Path) -> Iterator[tuple[Path, Path]]:
    """A new folder that takes the place of ``place`` at the end, and another one for what is needed on the way.

    After an exception nothing has changed. CannotMake if the place holds something that was not made so.
    """
    place = Path(os.path.realpath(place))  # where a link leads: the link stays
    _refuse_foreign(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(place)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        with locked(beside):
            (beside / MARKER).write_text(f"{_SAID}\n", encoding="utf-8")
            made, work = beside / "made", beside / "work"
            made.mkdir()
            work.mkdir()
            yield made, work
            (made / MARKER).write_text("".join(f"{line}\n" for line in (_SAID, *sorted(_inside(made)))), "utf-8")
            with locked(place.parent):
                _refuse_foreign(place)
                _swap(made, place, beside / "before")
    finally:
        _remove(beside)


def _swap(made: Path, place: Path, before: Path) -> None:
    if not place.exists():
        made.rename(place)
        return
    place.rename(before)
    try:
        made.rename(place)
    except BaseException:
        before.rename(place)
        raise


def _refuse_foreign(place: Path) -> None:
    if place.exists() and not place.is_dir():
        raise CannotMake(f"{place} is no folder; name another")
    if not (found := _inside(place)):
        return
    try:
        said, *made = (place / MARKER).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        said, made = "", []
    if said != _SAID:
        raise CannotMake(f"{place} holds something else than a site of this command; name another folder, or remove it")
    if foreign := found - {*made, MARKER}:
        raise CannotMake(
            f"{place} also holds {min(foreign)}, which is not of the site and would be lost; move it elsewhere"
        )


def _inside(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def _remove_leftovers(place: Path) -> None:
    """What runs have left that were killed: nobody holds its lock any more."""
    for beside in place.parent.glob(f".{escape(place.name)}.*"):
        if (beside / MARKER).is_file() and not beside.is_symlink():
            with suppress(BlockingIOError), locked(beside, fcntl.LOCK_NB):
                _remove(beside)


def _remove(beside: Path) -> None:
    """The marker last, so that what is left of it is known if this is interrupted too."""
    for path in beside.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def locked(folder: Path, how: int = 0) -> Iterator[None]:
    """Hold the lock on that folder, against other processes; ``how``: with LOCK_NB, BlockingIOError if it is held."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | how)
        yield
    finally:
        os.close(descriptor)

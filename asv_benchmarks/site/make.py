"""The site as a whole: its parts, made beside its place and put there at the end."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from asv_benchmarks.site import CannotMake, gil, history, reports
from asv_benchmarks.site.graphs import commits, publish
from asv_benchmarks.site.lead import commits_page, lead_page
from asv_benchmarks.site.libraries import Library, fetch
from asv_benchmarks.site.offline import make_self_contained, refuse_other_hosts
from asv_benchmarks.site.parts import Part
from asv_benchmarks.site.swap import fresh

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Places:
    """Where everything is. Results of asv in a later folder stand for those of the same name in an earlier one."""

    out: Path
    made: Path = ROOT / "out"
    config: Path = ROOT / "asv_benchmarks" / "asv.conf.json"
    results: tuple[Path, ...] = (ROOT / "asv_benchmarks" / "history", ROOT / ".asv" / "results")
    libraries: Path = ROOT / ".asv" / "libraries"


def make_site(places: Places) -> tuple[list[Part], list[str]]:
    """Write the site anew; its parts, and a sentence for each thing that went wrong.

    CannotMake if its folder holds something else, OSError if it cannot be written: then nothing has changed.
    """
    with fresh(places.out) as (site, work):
        return _make(replace(places, out=site), work)


def _make(places: Places, work: Path) -> tuple[list[Part], list[str]]:
    libraries: list[Library] = []
    parts = [
        *(_attempt(kind.empty, partial(reports.report_part, kind, places.made, places.out)) for kind in reports.KINDS),
        _attempt(history.EMPTY, lambda: _graphs(places, work, libraries)),
        _attempt(gil.EMPTY, lambda: gil.gil_part(places.made, places.out)),
    ]
    (places.out / "index.html").write_text(lead_page(parts, libraries), encoding="utf-8")
    problems = [part.missing for part in parts if part.missing]
    try:
        refuse_other_hosts(places.out)
    except CannotMake as reason:
        problems.append(str(reason))
    return parts, problems


def _attempt(empty: Part, make: Callable[[], Part]) -> Part:
    """The part; one that cannot be made is empty and says why, and the others are made all the same."""
    try:
        return make()
    except CannotMake as reason:
        return replace(empty, missing=str(reason))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        return replace(empty, missing=f"What `{empty.command}` wrote cannot be shown: {what}; run it again")


def _graphs(places: Places, work: Path, libraries: list[Library]) -> Part:
    """asv's pages, whole or not at all."""
    pages = places.out / "asv"
    try:
        index = publish(places.config, places.results, work, pages)
        if index is None:
            return history.EMPTY
        part = history.history_part(index, pages)
        libraries += make_self_contained(pages, fetch(places.libraries))
        found = commits(index, places.config.parent)
    except BaseException:
        shutil.rmtree(pages, ignore_errors=True)
        raise
    (places.out / "commits.html").write_text(commits_page(found), encoding="utf-8")
    return part


def command(arguments: Sequence[str] | None) -> int:
    """What ``python -m asv_benchmarks.site`` does; its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m asv_benchmarks.site", description="Make the site from what has been measured."
    )
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "site", help="folder (default out/site)")
    out: Path = parser.parse_args(arguments).out
    try:
        parts, problems = make_site(Places(out))
    except CannotMake as reason:
        print(f"site: {reason}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"site: {out} cannot be written: {_why(error, out)}", file=sys.stderr)
        return 1
    for part in parts:
        if not part.body and not part.missing:
            print(f"site: {part.title}: not measured yet, `{part.command}` does", file=sys.stderr)
    for problem in problems:
        print(f"site: {problem}", file=sys.stderr)
    print(f"{out / 'index.html'} leads in; open it from there or from any server")
    return 1 if problems else 0


def _why(error: OSError, out: Path) -> str:
    reason = "it is no folder" if isinstance(error, FileExistsError) else error.strerror or str(error)
    return reason if error.filename in (None, str(out)) else f"{error.filename}: {reason}"

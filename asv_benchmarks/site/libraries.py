"""Local copies of the scripts and styles that asv's pages load from the internet.

npm fetches them once, in the versions and with the checksums of ``package-lock.json``; where the address in asv's page
has a checksum of its own, that is checked as well. Their licences are copied beside them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from asv_benchmarks.site import CannotMake
from asv_benchmarks.site.swap import locked

HERE = Path(__file__).parent
PINS = ("package.json", "package-lock.json")


@dataclass(frozen=True)
class Copy:
    """A file of an npm package that stands for an address."""

    package: str
    path: str
    same: bool = True
    """Whether it is, byte for byte, what the address gives, so that asv's own checksum must hold."""


COPIES = {
    "jquery-3.3.1.min.js": Copy("jquery", "dist/jquery.min.js"),
    # The npm package has the same version, but nothing minified.
    "flot/0.8.3/jquery.flot.min.js": Copy("flot", "jquery.flot.js", same=False),
    "flot/0.8.3/jquery.flot.time.min.js": Copy("flot", "jquery.flot.time.js", same=False),
    "flot/0.8.3/jquery.flot.selection.min.js": Copy("flot", "jquery.flot.selection.js", same=False),
    "flot/0.8.3/jquery.flot.categories.min.js": Copy("flot", "jquery.flot.categories.js", same=False),
    "flot-orderbars@1.0.0/js/jquery.flot.orderBars.js": Copy("flot-orderbars", "js/jquery.flot.orderBars.js"),
    # npm has one version only: 1.1.3.
    "stupidtable/1.0.1/stupidtable.min.js": Copy("stupid-table-plugin", "stupidtable.min.js", same=False),
    "blueimp-md5/2.19.0/js/md5.min.js": Copy("blueimp-md5", "js/md5.min.js"),
    "bootstrap@3.1.1/dist/js/bootstrap.min.js": Copy("bootstrap", "dist/js/bootstrap.min.js"),
    "bootstrap@3.1.1/dist/css/bootstrap.min.css": Copy("bootstrap", "dist/css/bootstrap.min.css"),
}
"""How an address ends → what stands for it."""

COMPANIONS = {"bootstrap": ["dist/fonts"]}
"""What the copied styles refer to."""

LICENCES = {
    "blueimp-md5": "LICENSE.txt",
    "bootstrap": "LICENSE",
    "flot": "LICENSE.txt",
    # MIT; the package has no other file that says so, but the script's first lines do.
    "flot-orderbars": "package.json",
    "jquery": "LICENSE.txt",
    "stupid-table-plugin": "LICENSE",
}


@dataclass(frozen=True)
class Library:
    """A copied package, for people."""

    name: str
    version: str
    licence: str
    """Path of its licence below the folder of the copies."""


def fetch(cache: Path) -> Path:
    """The folder ``node_modules`` below ``cache`` with all packages, fetched if the pins have changed since.

    Of several processes one fetches, and the others wait for it.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with locked(cache):
            return _fetch(cache)
    except OSError as error:
        where = error.filename or cache
        raise CannotMake(f"asv's pages have nowhere to keep their scripts: {where}: {error.strerror}") from None


def _fetch(cache: Path) -> Path:
    modules = cache / "node_modules"
    pins = {name: (HERE / name).read_bytes() for name in PINS}
    # npm writes this file last.
    if (modules / ".package-lock.json").exists() and all(
        (cache / name).exists() and (cache / name).read_bytes() == pin for name, pin in pins.items()
    ):
        return modules
    shutil.rmtree(modules, ignore_errors=True)
    for name, pin in pins.items():
        (cache / name).write_bytes(pin)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1"]
    try:
        done = subprocess.run(command, cwd=cache, capture_output=True, text=True)
    except FileNotFoundError:
        raise CannotMake(
            "npm is needed once, for the scripts of asv's pages (jQuery, flot and others), and is not on PATH; "
            "install it (Debian, Ubuntu: the package npm)"
        ) from None
    if done.returncode:
        # What npm means stands below the codes of the error.
        said = re.findall(r"^npm error (?!code |syscall |errno |path )(.*)", done.stderr, re.MULTILINE)
        reason = said[0] if said else f"exit status {done.returncode}"
        raise CannotMake(f"npm cannot fetch the scripts of asv's pages (jQuery, flot and others): {reason}")
    return modules


class Libraries:
    """Copies files into ``folder`` as pages ask for them by address."""

    def __init__(self, modules: Path, folder: Path) -> None:
        self._modules = modules
        self._folder = folder
        self._used: set[str] = set()

    def copy(self, address: str, checksum: str | None) -> str:
        """Path of the copy below the folder. ``checksum``: what asv's page says of the file, as in HTML's integrity."""
        known = next((copy for end, copy in COPIES.items() if address.endswith(f"/{end}")), None)
        if known is None:
            raise CannotMake(
                f"asv's pages load {address}, of which no local copy is known; "
                "add one to COPIES in asv_benchmarks/site/libraries.py"
            )
        content = (self._modules / known.package / known.path).read_bytes()
        if known.same and checksum is not None and not holds(checksum, content):
            raise CannotMake(f"the copy of {address} is not the file that asv's page describes: its checksum differs")
        path = Path(known.package, known.path)
        (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self._folder / path).write_bytes(content)
        for extra in (LICENCES[known.package], *COMPANIONS.get(known.package, ())):
            self._copy_beside(Path(known.package, extra))
        self._used.add(known.package)
        return path.as_posix()

    def _copy_beside(self, path: Path) -> None:
        if (self._modules / path).is_dir():
            shutil.copytree(self._modules / path, self._folder / path, dirs_exist_ok=True)
        else:
            shutil.copy(self._modules / path, self._folder / path)

    def copied(self) -> list[Library]:
        packages = json.loads((HERE / "package-lock.json").read_text())["packages"]
        return [
            Library(name, packages[f"node_modules/{name}"]["version"], f"{name}/{LICENCES[name]}")
            for name in sorted(self._used)
        ]


def holds(checksum: str, content: bytes) -> bool:
    """Whether one of the checksums, ``ALGORITHM-BASE64`` with spaces between, is that of the content."""
    for one in checksum.split():
        algorithm, _, digest = one.partition("-")
        if base64.b64encode(hashlib.new(algorithm, content).digest()).decode() == digest:
            return True
    return False

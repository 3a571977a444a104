"""The peers' environment: found, or made. Several GB, none of it in this project's own environment."""

from __future__ import annotations

import platform
import shutil
import sys
import zipfile
from pathlib import Path

from triradix.compare.driver import Peers
from triradix.environments import PIP, EnvironmentMissing, do, make_environment, make_folder

SGLANG = "sglang==0.5.23"
"""Pinned: its interface changes from release to release."""
PACKAGES = ("torch==2.13.0", "numpy", "msgspec", "pyzmq", "pydantic")
DYNAMO = "ai-dynamo-runtime==1.6.1"
DEFAULT = Path(".peers")
_BYTES = 8 * 10**9


def find(folder: Path) -> Peers | None:
    """The peers in ``folder``, if they are there: ``venv`` and ``sgl``, or links to them."""
    # Not resolved: a venv's Python is a link, and the place of the link is what makes it the venv's.
    python, sglang = folder.absolute() / "venv/bin/python", folder.absolute() / "sgl"
    return Peers(python, sglang) if python.exists() and (sglang / "sglang").is_dir() else None


def find_or_make(where: str | None) -> Peers:
    """The peers in the folder that is named, made if they are not whole there.

    None: those in the default folder, if they are there. EnvironmentMissing if there are none, also for "none".
    """
    if where == "none":
        raise EnvironmentMissing("--peers none")
    folder = DEFAULT if where is None else Path(where)
    found = find(folder)
    if found is None and where is None:
        raise EnvironmentMissing(f"`--peers {DEFAULT}` installs them there (about 6 GB)")
    return found or make(folder)


def make(folder: Path) -> Peers:
    """Install the peers into ``folder``; what an attempt before has left there is used."""
    if platform.system() != "Linux":
        raise EnvironmentMissing(f"the wheels of SGLang are for Linux, not {platform.system()}")
    make_folder(folder, _BYTES, "they take")
    print(
        f"Installing the peers into {folder}: downloads about 2 GB, takes about 6 GB of disk, and some minutes.",
        file=sys.stderr,
        flush=True,
    )
    wheels, unpacked = folder / "wheels", folder / "sgl"
    pip = [make_environment(folder / "venv"), *PIP]
    do(f"{PACKAGES[0]} cannot be installed", [*pip, "install", "--no-cache-dir", *PACKAGES])
    try:
        do(f"{DYNAMO} cannot be installed", [*pip, "install", "--no-cache-dir", DYNAMO])
    except EnvironmentMissing as error:
        print(f"triradix compare: no Dynamo: {error}", file=sys.stderr)
    do(
        f"{SGLANG} cannot be downloaded",
        [*pip, "download", "--no-cache-dir", "--no-deps", "--only-binary", ":all:", "--dest", str(wheels), SGLANG],
    )
    # Under its own name only when it is whole: that is what `find` looks for.
    partial = folder / "sgl.partial"
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(next(wheels.glob("sglang-*.whl"))) as wheel:
        wheel.extractall(partial)
    shutil.rmtree(unpacked, ignore_errors=True)
    partial.rename(unpacked)
    shutil.rmtree(wheels)
    found = find(folder)
    assert found is not None
    return found


def main(arguments: list[str]) -> int:
    """``make peers``."""
    folder = Path(arguments[0]) if arguments else DEFAULT
    try:
        peers = find(folder) or make(folder)
    except EnvironmentMissing as error:
        print(f"make peers: {error}", file=sys.stderr)
        return 1
    print(f"The peers are in {peers.sglang.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

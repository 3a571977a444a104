"""The machine that results are of: its name, and the file in which asv finds what it knows of machines.

asv loads this as a plugin (``plugins`` in asv.conf.json): without it that file would be ``~/.asv-machine.json``.
"""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / ".asv" / "machines.json"
TAKEN = ("version", "benchmarks.json")
"""What asv itself keeps where the names of machines stand."""


def setup() -> None:
    """What asv calls."""
    from asv.machine import MachineCollection  # type: ignore[import-untyped]

    MachineCollection.get_machine_file_path = staticmethod(lambda: str(FILE))


def plain(name: str) -> str:
    """The name, if a folder of results can have it; else ValueError."""
    if not name or name.startswith(".") or set(name) & {"/", "\\"} or not name.isprintable() or name in TAKEN:
        raise ValueError(
            f"{name!r} cannot be the name of a machine: a folder of results is called so, which takes letters, digits, "
            "and dots and dashes between them"
        )
    if len(name.encode()) > 200:
        raise ValueError(f"{name[:20]!r}… cannot be the name of a machine: it is longer than 200 bytes")
    return name

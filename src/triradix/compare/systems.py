"""What is compared, by name."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from triradix.compare.adapter import Adapter


@dataclass(frozen=True)
class System:
    """``adapter``: module:class, imported only in the system's own process. ``ours`` runs in this environment."""

    name: str
    label: str
    adapter: str
    ours: bool

    def load(self) -> type[Adapter]:
        module, _, name = self.adapter.partition(":")
        return cast("type[Adapter]", getattr(import_module(module), name))


SYSTEMS = (
    System("reference", "Python (ours)", "triradix.compare.trees:Reference", True),
    System("cython", "Cython (ours)", "triradix.compare.trees:Cython", True),
    System("rust", "Rust (ours)", "triradix.compare.trees:Rust", True),
    System("sglang-py", "SGLang-Py", "triradix.compare.sglang:PythonTree", False),
    System("sglang-rust", "SGLang-Rust", "triradix.compare.sglang:RustTree", False),
    System("sglang-rust-raw", "SGLang-Rust raw", "triradix.compare.sglang:RustBinding", False),
    System("dynamo", "Dynamo", "triradix.compare.dynamo:BlockIndex", False),
)

FLOOR = System("floor", "floor", "triradix.compare.machine:Machine", True)
"""What the machine itself takes: measured in turns with the others, but no cache."""

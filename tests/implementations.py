"""What the suite is run against: one small record for each implementation, imported only when a test asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import triradix


@dataclass(frozen=True)
class Implementation:
    """``name`` is one of `triradix.IMPLEMENTATIONS`, or ``module:Class`` for a tree from elsewhere."""

    name: str

    @property
    def cls(self) -> Any:
        """The class; ImportError if it cannot be imported."""
        module, _, attribute = self.name.partition(":")
        if attribute:
            return getattr(import_module(module), attribute)
        return type(triradix.create(self.name))

    def create(self, **config: Any) -> Any:
        """An empty cache."""
        if ":" in self.name:
            return self.cls(**config)
        return triradix.create(self.name, **config)

    def __str__(self) -> str:
        return self.name

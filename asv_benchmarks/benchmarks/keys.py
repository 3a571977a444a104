"""The forms in which a caller may hold a key."""

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from triradix import PrefixKey

from .timing import Timed
from .workload import IMPLEMENTATIONS, Rows, as_array, filled, rows

FORMS: dict[str, Callable[[Rows], Any]] = {
    "list": lambda row: row.tolist(),
    "array q": as_array,
    "array i": lambda row: array("i", row.tolist()),
    "array I": lambda row: array("I", row.tolist()),
    "NumPy int64": lambda row: row.copy(),
    "NumPy int32": lambda row: row.astype(np.int32),
    "PrefixKey": PrefixKey,
}


class KeyForm(Timed):
    """A hot match of the whole key, which was given in the same form before."""

    params = (IMPLEMENTATIONS, tuple(FORMS), (128, 8192))
    param_names = ("implementation", "form", "tokens")

    def setup(self, implementation: str, form: str, length: int) -> None:
        row = rows(0, 1, length)[0]
        self.key = FORMS[form](row)
        self.cache = filled(implementation, [row])
        self.calls = 2_000 if length == 128 else 100
        self.one_of(self.calls)

    def time_one_match(self, *_: object) -> None:
        match, key = self.cache.match_prefix, self.key
        for _call in range(self.calls):
            match(key)

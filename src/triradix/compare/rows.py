"""Every row, in the order of the table."""

from __future__ import annotations

from fnmatch import fnmatchcase

from triradix.compare.row import Scale, Work
from triradix.compare.rows_further import further_works
from triradix.compare.rows_table import table_works


def make_works(scale: Scale) -> list[Work]:
    """A new object for each work."""
    return [*table_works(scale), *further_works(scale)]


def choose(available: list[Work], patterns: list[str]) -> list[Work]:
    """The works with a row that one of the patterns names. ValueError if a pattern names none."""
    for pattern in patterns:
        if not any(fnmatchcase(row.name, pattern) for work in available for row in work.rows):
            known = ", ".join(row.name for work in available for row in work.rows)
            raise ValueError(f"no row is called {pattern!r}; there are: {known}")
    return [
        work for work in available if any(fnmatchcase(row.name, pattern) for row in work.rows for pattern in patterns)
    ]

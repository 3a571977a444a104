"""What the pages of all reports have in common: how they look, and the script that reads a curve under the cursor.

Both are put into each page when it is made, so that it needs nothing else.
"""

from importlib.resources import files


def style() -> str:
    """The rules, which those of a page of its own may follow. ``.s0`` to ``.s2`` are the colours of the three trees."""
    return files("triradix").joinpath("pages.css").read_text(encoding="utf-8")


def script() -> str:
    return files("triradix").joinpath("pages.js").read_text(encoding="utf-8")

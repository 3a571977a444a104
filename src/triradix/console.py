"""Where the commands print their tables."""

from __future__ import annotations

from rich import console


class Console(console.Console):
    """As rich's, but that a reader who has gone is a BrokenPipeError, as for what `print` writes."""

    def on_broken_pipe(self) -> None:
        raise  # what rich has caught

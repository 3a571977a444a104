"""Make the site from what has been measured: see the package.

What stood in its place stays until the new one is whole. Exit codes: 0 made, and what has not been measured yet is
named; 1 something that has been measured is not shown, or a page refers to another host, or nothing was made; 130 ended
by Ctrl-C, 143 by SIGTERM; 141 the reader of a pipe has gone.
"""

from __future__ import annotations

from collections.abc import Sequence

from asv_benchmarks.console import ending, open_missing_streams


def main(arguments: Sequence[str] | None = None) -> int:
    open_missing_streams()
    return ending("site", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> int:
    # Imported here, so that Ctrl-C meanwhile is no traceback either.
    from asv_benchmarks.site.make import command
    from triradix.processes import orderly_end

    with orderly_end():
        return command(arguments)


if __name__ == "__main__":
    raise SystemExit(main())

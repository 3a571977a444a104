"""A tree that is asked for in a sub-interpreter refuses with an ImportError that says so; the main one goes on."""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
from pathlib import Path

from implementations import Implementation

try:
    import _interpreters as interpreters  # type: ignore[import-not-found]
except ImportError:
    import _xxsubinterpreters as interpreters  # type: ignore[import-not-found, no-redef]


def main() -> None:
    implementation = Implementation(sys.argv[1])
    cache = implementation.create()
    cache.insert([1, 2, 3], [1, 2, 3])
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder, "said")
        source = f"""
            import sys
            sys.path[:] = {sys.path!r}
            try:
                from implementations import Implementation
                Implementation({implementation.name!r}).create()
                answer = "works"
            except ImportError as error:
                answer = str(error)
            with open({os.fspath(said)!r}, "w") as file:
                file.write(answer)
        """
        # The legacy kind, with the GIL of the main one, is what C extensions of one phase can be loaded in.
        legacy = ("legacy",) if interpreters.__name__ == "_interpreters" else ()
        other = interpreters.create(*legacy)
        failed = interpreters.run_string(other, textwrap.dedent(source))
        assert not failed, failed
        interpreters.destroy(other)
        answer = said.read_text()
    assert "cannot be imported in a sub-interpreter" in answer, answer
    assert cache.match_prefix_many([[1, 2, 3]]).lengths.tolist() == [3]
    cache.check()


main()

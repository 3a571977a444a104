"""The environment of SGLang's engine on a CPU: found, or made. Several GB, and none of it in the project's own.

It sees the triradix of the Python that made it, so an edit needs no new install.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from triradix.environments import PIP, do, make_environment, make_folder
from triradix.environments import EnvironmentMissing as EnvironmentMissing

DEFAULT = Path(".sglang")
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
STUBS = Path(__file__).with_name("stubs")
_TORCH = "torch==2.13.0"
_BYTES = 9 * 10**9


def find(folder: Path) -> Path | None:
    """The engine's Python in ``folder``, if it is whole."""
    python = folder.absolute() / "bin/python"
    return python if python.exists() and (folder / "complete").exists() else None


def make(folder: Path) -> Path:
    """Install the engine into ``folder``, and return its Python. EnvironmentMissing if that cannot be done."""
    if sys.platform != "linux" or sys.version_info < (3, 11):
        raise EnvironmentMissing(
            "SGLang's engine runs on Linux with Python 3.11 or newer, not on "
            f"{sys.platform} with {sys.version.split()[0]}"
        )
    make_folder(folder, _BYTES, "SGLang takes")
    print(
        f"Installing SGLang's engine into {folder}: 2.5 GB to download, 6 GB of disk, some minutes.",
        file=sys.stderr,
        flush=True,
    )
    python = make_environment(folder, "--clear")
    pip = [python, *PIP, "install", "--no-cache-dir"]
    do(f"{_TORCH} cannot be installed", [*pip, _TORCH])
    # Without their dependencies: SGLang's own include what only a GPU can use. The list is all that a CPU needs.
    do("SGLang cannot be installed", [*pip, "--no-deps", "--requirement", str(REQUIREMENTS)])
    here = sysconfig.get_path("purelib")
    there = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    ).strip()
    # Behind the engine's own packages, which so come first; as a site folder, for editable installs.
    Path(there, "triradix-of-this-project.pth").write_text(
        f"import site; site.addsitedir({here!r})\n", encoding="utf-8"
    )
    (folder / "complete").touch()
    return Path(python)


def variables() -> dict[str, str]:
    """The environment variables of a process that runs the engine."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(STUBS), os.environ.get("PYTHONPATH")))),
        "SGLANG_USE_CPU_ENGINE": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # The scheduler and whoever asks it have a core each; more threads would only wait for one another.
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }


def main(arguments: list[str]) -> int:
    """``make sglang``."""
    folder = Path(arguments[0]) if arguments else DEFAULT
    try:
        python = find(folder) or make(folder)
    except EnvironmentMissing as error:
        print(f"no SGLang engine: {error}", file=sys.stderr)
        return 1
    print(f"SGLang's engine is in {python.parent.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Build and install the wheels of a commit: what asv runs, in its own environment, for each commit it measures.

    python wheels.py build CACHE      in a checkout: triradix and, where the commit has it, triradix-rust
    python wheels.py install CACHE    what the build has left in CACHE

It stands beside asv.conf.json, not in the checkout, so that commits older than it can be built too. Nothing but the
standard library is there to import.

The build also writes which parts the commit has, by its sources, and the install puts that where the benchmarks look
(``benchmarks/commit.py``): a part that the commit does not have yet is skipped. A part that it has and that does not
build ends the build, and asv records every benchmark of that commit as failed.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

DISTRIBUTIONS = {"triradix": Path("."), "triradix-rust": Path("rust_impl")}
# From the first commit on each part has a folder; it is there once this file is.
PARTS = {
    "reference": Path("reference/cache.py"),
    "cython": Path("cython_impl/cache.pyx"),
    "rust": Path("rust_impl/Cargo.toml"),
}
COMMIT_FILE = "triradix-commit.json"
ROOT = Path(__file__).resolve().parent.parent
# Outside the checkout: asv wipes that for each commit, and the Rust dependencies would be compiled anew each time.
CARGO_TARGET = ROOT / ".asv" / "cargo"
# The same compilers for every commit: a newer Cython is no change of the code that is measured.
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"


def wheel_folder(cache: Path) -> Path:
    """A folder below the cache: asv takes more than one wheel in the cache itself for a mistake."""
    return cache / "wheels"


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments], check=True)


def build(checkout: Path, cache: Path) -> None:
    os.environ["CARGO_TARGET_DIR"] = str(CARGO_TARGET)
    os.environ["PIP_CONSTRAINT"] = os.environ["PIP_BUILD_CONSTRAINT"] = str(CONSTRAINTS)  # pip before 26 and since
    wheel_folder(cache).mkdir(parents=True, exist_ok=True)
    built = [name for name, folder in DISTRIBUTIONS.items() if (checkout / folder / "pyproject.toml").exists()]
    for name in built:
        pip("wheel", "--no-deps", "--wheel-dir", str(wheel_folder(cache)), str(checkout / DISTRIBUTIONS[name]))
    parts = [name for name, source in PARTS.items() if (checkout / source).exists()]
    (cache / COMMIT_FILE).write_text(json.dumps({"distributions": built, "parts": parts}))


def install(cache: Path) -> None:
    """Install what was built and nothing else; what another commit left goes first."""
    if not (cache / COMMIT_FILE).exists():
        sys.exit("wheels.py: an older version of this script made that build; delete .asv/env")
    pip("uninstall", "--yes", *DISTRIBUTIONS)
    distributions = json.loads((cache / COMMIT_FILE).read_text())["distributions"]
    if distributions:
        # --no-index, --no-deps: these wheels and no others.
        pip("install", "--no-index", "--no-deps", "--find-links", str(wheel_folder(cache)), *distributions)
    shutil.copy(cache / COMMIT_FILE, sys.prefix)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("build", "install"):
        sys.exit("usage: wheels.py build|install CACHE")
    if sys.argv[1] == "build":
        build(Path.cwd(), Path(sys.argv[2]))
    else:
        install(Path(sys.argv[2]))

"""Build and install the two wheels of a commit: what asv runs, in its own environment, for each commit it measures.

    python wheels.py build CACHE      in a checkout: triradix and, where the commit has it, triradix-rust
    python wheels.py install CACHE    what the build has left in CACHE

It stands beside asv.conf.json, not in the checkout, so that commits older than it can be built too. Nothing but the
standard library is there to import.
"""

import os
import subprocess
import sys
from pathlib import Path

DISTRIBUTIONS = {"triradix": Path("."), "triradix-rust": Path("rust_impl")}
# Outside the checkout: asv wipes that for each commit, and the Rust dependencies would be compiled anew each time.
CARGO_TARGET = Path(__file__).resolve().parent.parent / ".asv" / "cargo"


def wheel_folder(cache: Path) -> Path:
    """A folder below the cache: asv takes more than one wheel in the cache itself for a mistake."""
    return cache / "wheels"


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True)


def build(checkout: Path, cache: Path) -> None:
    os.environ["CARGO_TARGET_DIR"] = str(CARGO_TARGET)
    wheel_folder(cache).mkdir(parents=True, exist_ok=True)
    for distribution, folder in DISTRIBUTIONS.items():
        if (checkout / folder / "pyproject.toml").exists():
            pip("wheel", "--no-deps", "--wheel-dir", str(wheel_folder(cache)), str(checkout / folder))
        else:
            print(f"this commit has no {distribution} yet: its benchmarks will fail, not be skipped")


def built(cache: Path) -> list[str]:
    """The distributions that the build has made, by name."""
    names = {wheel.name.split("-")[0].replace("_", "-") for wheel in wheel_folder(cache).glob("*.whl")}
    return sorted(names & set(DISTRIBUTIONS))


def install(cache: Path) -> None:
    # --force-reinstall: each commit has the same version. --no-index, --no-deps: these wheels and no others.
    if distributions := built(cache):
        pip(
            "install",
            "--no-index",
            "--no-deps",
            "--force-reinstall",
            "--find-links",
            str(wheel_folder(cache)),
            *distributions,
        )


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("build", "install"):
        sys.exit("usage: wheels.py build|install CACHE")
    if sys.argv[1] == "build":
        build(Path.cwd(), Path(sys.argv[2]))
    else:
        install(Path(sys.argv[2]))

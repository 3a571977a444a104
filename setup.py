"""The compiled modules: one for each .pyx file of the Cython tree, and the floor of `triradix compare`.

Everything else is in pyproject.toml. With TRIRADIX_PURE=1 there are none: a wheel for any platform, whose only tree is
the reference.
"""

import os
import re
import shutil
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

VERSION_FILE = Path("src/triradix/__init__.py")
(VERSION,) = re.findall(r'^__version__ = "(.+)"$', VERSION_FILE.read_text(encoding="utf-8"), re.MULTILINE)

FLAGS = ["-O3", "-g1", "-fno-strict-aliasing", "-fwrapv"]
SOURCES = sorted(Path("cython_impl").glob("*.pyx"))
DECLARATIONS = sorted(Path("cython_impl").glob("*.pxd"))


def declarations() -> str:
    """A folder where Cython finds the .pxd files under their import name, which is not that of their source folder."""
    root = Path("build/declarations")
    package = root / "triradix/cython_impl"
    shutil.rmtree(root, ignore_errors=True)
    package.mkdir(parents=True)
    (root / "triradix/__init__.pxd").touch()
    (package / "__init__.pxd").touch()
    for path in DECLARATIONS:
        shutil.copy2(path, package)
    return str(root)


# What `triradix compare` holds its figures against; no part of a tree.
FLOOR = Extension(
    "triradix.compare.floor", ["src/triradix/compare/floor.pyx"], extra_compile_args=["-O3", "-fno-strict-aliasing"]
)

PURE = os.environ.get("TRIRADIX_PURE", "0") == "1"

setup(
    ext_modules=[]
    if PURE
    else cythonize(
        [
            FLOOR,
            *(
                Extension(
                    f"triradix.cython_impl.{path.stem}",
                    [str(path)],
                    # So that a source distribution has them.
                    depends=[
                        str(path),
                        *map(str, DECLARATIONS),
                        *([str(VERSION_FILE)] if path.stem == "built" else []),
                    ],
                    include_dirs=[np.get_include()],
                    define_macros=[
                        ("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"),
                        # The version that a tree is built from, whatever stands beside it when it is imported.
                        *([("TRIRADIX_VERSION", f'"{VERSION}"')] if path.stem == "built" else []),
                    ],
                    extra_compile_args=FLAGS,
                )
                for path in SOURCES
            ),
        ],
        include_path=[declarations()],
        nthreads=2,
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "freethreading_compatible": False,
        },
    )
)

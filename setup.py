"""The compiled modules of the Cython tree: one for each .pyx file. Everything else is in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

FLAGS = ["-O3", "-g1", "-fno-strict-aliasing", "-fwrapv"]

setup(
    ext_modules=cythonize(
        [
            Extension(f"triradix.cython_impl.{path.stem}", [str(path)], extra_compile_args=FLAGS)
            for path in sorted(Path("cython_impl").glob("*.pyx"))
        ],
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

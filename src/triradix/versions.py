"""A compiled tree is made for one version of this package: another one is refused when it is imported."""

from __future__ import annotations

import triradix


class OtherVersionError(ImportError):
    """A compiled tree of another version than this package."""


def require_same(name: str, version: str | None) -> None:
    """For the tree ``name`` that is being imported, compiled from ``version`` (None: it does not say).

    `OtherVersionError`, with what puts it right, if that is not the version of this package.
    """
    if version != triradix.__version__:
        raise OtherVersionError(
            f"the {name} tree is of {f'version {version}' if version else 'an unknown version'} and triradix of "
            f"{triradix.__version__}; they must be the same: {reinstall(name)}"
        )


def reinstall(name: str) -> str:
    """What makes a tree of this version of the package."""
    wanted = f"triradix{'[rust]' if name == 'rust' else ''}=={triradix.__version__}"
    return f"pip install --force-reinstall '{wanted}', or in a checkout: make build"

"""Makes the prefix caches of an unpacked SGLang importable without the rest of the engine.

SGLang's own packages begin by importing a serving engine. Here they are opened as plain namespaces: the modules of the
caches are SGLang's own files, unchanged, and every other module of SGLang that they name is a hollow one, whose
attributes are empty classes. Nothing of a hollow module runs while a cache is measured, but for the four helpers that
`_FILLED` gives it.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

_REAL = tuple(
    f"sglang.srt.{name}"
    for name in (
        "disaggregation.kv_events",
        "environ",
        "mem_cache.base_prefix_cache",
        "mem_cache.cache_init_params",
        "mem_cache.events",
        "mem_cache.evict_policy",
        "mem_cache.hicache_storage",
        "mem_cache.radix_cache",
        "mem_cache.rust_tree_core",
        "mem_cache.storage_prefetch",
        "mem_cache.unified_cache",
        "mem_cache.unified_radix_cache",
        "mem_cache.utils",
        "rust_extensions",
        "session.streaming_session",
    )
)
_HOLLOW_TOO = "triton"


def install(root: Path) -> None:
    """From now on ``import sglang`` finds the unpacked wheel in ``root``. ImportError if there is none."""
    if not (root / "sglang/srt/mem_cache/radix_cache.py").is_file():
        raise ImportError(f"{root} does not hold SGLang: sglang/srt/mem_cache/radix_cache.py is missing")
    sys.path.append(str(root))
    sys.meta_path.insert(0, _Finder(root))


class _Finder(MetaPathFinder):
    def __init__(self, root: Path) -> None:
        self._root = root

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        top = name.partition(".")[0]
        if top not in ("sglang", _HOLLOW_TOO):
            return None
        place = self._root.joinpath(*name.split("."))
        if any(name == real or name.startswith(f"{real}.") for real in _REAL):
            if (place / "__init__.py").is_file():
                return spec_from_file_location(name, place / "__init__.py", submodule_search_locations=[str(place)])
            # A compiled module, or none, is left to Python's own search.
            source = place.with_suffix(".py")
            return spec_from_file_location(name, source) if source.is_file() else None
        leads_to_real = any(real.startswith(f"{name}.") for real in _REAL)
        return ModuleSpec(name, _Namespace(place) if leads_to_real else _HollowLoader(), is_package=True)


class _Namespace(Loader):
    """A package whose ``__init__`` is not run."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = [str(self._place)]


class _HollowLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Hollow(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []
        for name, value in _FILLED.get(module.__name__, {}).items():
            setattr(module, name, value)


class _Hollow(ModuleType):
    """Any attribute is an empty class, which also serves as a decorator that changes nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (_Anything,), {})
        setattr(self, name, made)
        return made


class _Anything:
    def __new__(cls, *args: Any, **keywords: Any) -> Any:
        decorates = len(args) == 1 and not keywords and callable(args[0]) and not isinstance(args[0], type)
        return args[0] if decorates else object.__new__(cls)

    def __init__(self, *args: Any, **keywords: Any) -> None:
        pass

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


def _unchanged(*args: Any, **keywords: Any) -> Callable[[Any], Any]:
    """Stands for a checking decorator that is off: with one rank there is nobody to agree with."""
    return lambda function: function


def _check_int64(tokens: Any, what: str = "tokens") -> None:
    if not isinstance(tokens, array) or tokens.typecode != "q":
        raise TypeError(f"{what} must be an array('q')")


_UTILITIES: dict[str, Any] = {
    "ceil_align": lambda length, page: -(-length // page) * page,
    "assert_int64_array": _check_int64,
    "is_npu": lambda: False,
}
_FILLED: dict[str, dict[str, Any]] = {
    "sglang.srt.utils": _UTILITIES,
    "sglang.srt.utils.common": _UTILITIES,
    "sglang.srt.utils.rank_consensus_checker": {"rank_consensus": _unchanged},
    "sglang.srt.mem_cache.allocator.page_interleave": {"page_interleave_shard_size": lambda allocator: 1},
    "sglang.srt.mem_cache.cpp_utils.native_hash": {"get_native_hash": lambda *args, **keywords: None},
}

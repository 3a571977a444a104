"""Hollow modules for what SGLang imports though only a GPU could use it: triton, torchvision, sgl_kernel.

Python imports this by itself in each process of the engine (the folder is on PYTHONPATH). A hollow module is handed out
only where nobody else has a real one. Its attributes are hollow too; called as a decorator it changes nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_HOLLOW = ("triton", "torchvision", "sgl_kernel")


class _HollowType(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"


class _HollowBase(metaclass=_HollowType):
    pass


class _HollowModule(ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__file__ = __file__
        self.__spec__ = ModuleSpec(name, _loader, is_package=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        whole = f"{self.__name__}.{name}"
        if whole not in sys.modules:
            if name[0].isupper():  # a class, which somebody may derive from
                made: Any = _HollowType(name, (_HollowBase,), {"__module__": self.__name__})
                setattr(self, name, made)
                return made
            sys.modules[whole] = _HollowModule(whole)
        setattr(self, name, sys.modules[whole])
        return sys.modules[whole]

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if len(arguments) == 1 and callable(arguments[0]) and not keywords:
            return arguments[0]
        return _unchanged

    def __mro_entries__(self, bases: Sequence[Any]) -> tuple[type, ...]:
        return (_HollowBase,)

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, item: object) -> bool:
        return False


def _unchanged(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


class _Config:
    """`triton.Config`: its fields are read when kernels are defined."""

    def __init__(
        self, kwargs: dict[str, Any] | None = None, num_warps: int = 4, num_stages: int = 2, **more: Any
    ) -> None:
        self.kwargs, self.num_warps, self.num_stages = kwargs or {}, num_warps, num_stages


class _HollowLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module: Any = _HollowModule(spec.name)
        if spec.name in _HOLLOW:
            module.__version__ = "3.0.0" if spec.name == "triton" else "0.0.0"
        if spec.name == "triton":
            module.Config = _Config
            module.cdiv = lambda a, b: -(a // -b)
            module.next_power_of_2 = lambda n: 1 << (n - 1).bit_length() if n > 0 else 1
        return module  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, _loader, is_package=True) if name.partition(".")[0] in _HOLLOW else None


_loader = _HollowLoader()
sys.meta_path.append(_Finder())

"""Imports put off until something is used: an app file names pyspark, and mostly no more."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.abc import Loader

_ASKED_OF_MODULES = ("__all__", "__version__")


@contextmanager
def deferred(package: str) -> Iterator[None]:
    """Put off the import of a package; what is called, read or inherited from it is the real one.

    Without effect if the package is imported already.
    """
    if package in sys.modules:
        yield
        return
    finder = _Finder(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.end()


class _Deferred:
    """Something of a module, found when it is used."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> Any:
        return getattr(self._find(), name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._find()(*given, **named)

    def __getitem__(self, key: Any) -> Any:
        return self._find()[key]

    def __or__(self, other: Any) -> Any:
        return self._find() | other

    def __ror__(self, other: Any) -> Any:
        return other | self._find()

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._find())

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (self._find(),)


class _Module(ModuleType):
    """A module that stands for the real one."""

    def __init__(self, name: str, finder: _Finder) -> None:
        super().__init__(name)
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        if name in _ASKED_OF_MODULES:
            return self._finder.find(self.__name__, name)
        if name.startswith("__"):
            raise AttributeError(name)
        return _Deferred(lambda: self._finder.find(self.__name__, name))


class _Finder:
    """Gives modules that stand for those of a package, until one of them is needed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self._package:
            return None
        return ModuleSpec(fullname, cast("Loader", self), is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name, self)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: that is the point."""

    def find(self, module: str, name: str) -> Any:
        """Import for real, from now on."""
        self.end()
        real = importlib.import_module(module)
        if not hasattr(real, name):
            return importlib.import_module(f"{module}.{name}")
        return getattr(real, name)

    def end(self) -> None:
        """Take everything back that stands for something else."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name, module in list(sys.modules.items()):
            if isinstance(module, _Module):
                del sys.modules[name]

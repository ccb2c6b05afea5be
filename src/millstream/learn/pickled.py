"""Models as bytes: equal models are equal bytes, and bytes of another library are refused."""

from __future__ import annotations

import io
import pickle
import random
import sys
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, ClassVar

from millstream.errors import fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.errors import Location

_PROTOCOL = 5
_PACKAGES = {"sklearn": "scikit-learn"}
_PLAIN = ("millstream", "builtins")
"""Whose models are plain numbers: they are read by any version."""
_SEED = 0
_DEEP = 50_000
"""How many calls may be inside each other while a model is written: a tree may be deep."""


class _Canonical(pickle._Pickler):
    """Writes equal models alike, which depend on how often they were read.

    Equal texts are written as one object, so are the types of numpy's numbers, and sets in the
    order of their texts.
    """

    dispatch: ClassVar[dict[Any, Any]] = dict(pickle._Pickler.dispatch)

    def save(self, obj: Any, *args: Any, **kwargs: Any) -> None:
        """Write an object."""
        one = sys.intern(obj) if type(obj) is str else obj
        if type(obj).__module__ == "numpy.dtypes":
            one = _one_dtype(obj)
        super().save(one, *args, **kwargs)  # type: ignore[misc]

    def save_set(self, obj: set[Any]) -> None:
        """Write a set."""
        self.write(pickle.EMPTY_SET)  # type: ignore[attr-defined]
        self.memoize(obj)  # type: ignore[attr-defined]
        self.write(pickle.MARK)  # type: ignore[attr-defined]
        for item in sorted(obj, key=repr):
            self.save(item)
        self.write(pickle.ADDITEMS)  # type: ignore[attr-defined]

    dispatch[set] = save_set


def _one_dtype(kind: Any) -> Any:
    """Return the one object that numpy has for a type of numbers."""
    import numpy as np

    is_plain = kind.names is None and kind.kind in "biufc"
    return np.dtype(kind.str) if is_plain else kind


def canonical_bytes(model: Any) -> bytes:
    """Write a model; slower than pickle, but it does not matter how often it has been read."""
    file, limit = io.BytesIO(), sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEEP))
    try:
        _Canonical(file, _PROTOCOL).dump(model)
    finally:
        sys.setrecursionlimit(limit)
    return file.getvalue()


def quick_bytes(value: Any) -> bytes:
    """Write what only the same query reads."""
    return pickle.dumps(value, _PROTOCOL)


def digest_of(packed: bytes) -> str:
    """Return what identifies bytes.

    >>> digest_of(b"")[:8]
    'e3b0c442'
    """
    return sha256(packed).hexdigest()


def made_with(model: Any) -> str:
    """Name the library of a model, with its version; empty for classes of no package."""
    root = type(getattr(model, "estimator", model)).__module__.partition(".")[0]
    return "" if root in _PLAIN else _package(_PACKAGES.get(root, root)) or ""


def installed(library: str) -> str:
    """Return what is installed of a library that `made_with` names."""
    package = library.partition(" ")[0]
    return (_package(package) or f"no {package}") if package else ""


@cache
def _package(name: str) -> str | None:
    """Return a package with its version; None if it is not installed."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return None


def read_model(packed: bytes, library: str, *, of: str, at: Location) -> Any:
    """Read a model that the home holds.

    Raises:
        MODEL_UNREADABLE: Another version of its library wrote it, or the bytes are damaged.
    """
    if (now := installed(library)) != library:
        why, instead = f"{library} wrote it, and {now} is installed", f"install {library}"
        raise fault("MODEL_UNREADABLE", at=at, model=of, why=why, instead=instead)
    try:
        return pickle.loads(packed)
    except Exception as error:
        why = f"its bytes are damaged ({type(error).__name__}: {error})"
        instead = "restore the home from a backup"
        raise fault("MODEL_UNREADABLE", at=at, model=of, why=why, instead=instead) from error


def check_digest(packed: bytes, digest: str, *, of: str, at: Location) -> None:
    """Check the bytes of a version against the digest that was committed with it.

    Raises:
        MODEL_UNREADABLE: They are other bytes.
    """
    if digest_of(packed) != digest:
        why, instead = "its bytes are not those that were committed", "restore the home"
        raise fault("MODEL_UNREADABLE", at=at, model=of, why=why, instead=instead)


@contextmanager
def repeatable() -> Iterator[None]:
    """Give generators of random numbers that are made without a seed the same one.

    A retried batch would else learn another model: River makes such generators inside learners.
    """
    seed = random.Random.seed

    def seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
        seed(self, _SEED if a is None else a, version)

    random.Random.seed = seeded  # type: ignore[method-assign]
    try:
        yield
    finally:
        random.Random.seed = seed  # type: ignore[method-assign]

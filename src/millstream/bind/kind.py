"""The kinds of connector a profile can name, and their keys: read off the connectors themselves."""

from __future__ import annotations

import pkgutil
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any, Literal

from millstream import systems
from millstream.model.record import RecordOptions

INHERITED = ("schema", "event_time")
"""Fields that stay as the code says, whatever a source is bound to."""

SCALARS: Mapping[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    timedelta: 'a length of time such as "10 minutes"',
}
_WRITTEN_IN = (".settings", ".source", ".courier")
_TYPING_ONLY = {"Mapping": Mapping, "Sequence": Sequence, "Callable": Callable}
"""Names that modules import for type checkers only."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a connector in a profile."""

    name: str
    type: Any
    """A scalar, a Literal, `Sequence[str]`, `Mapping[str, …]` or a dataclass of keys."""
    default: Any = MISSING

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    @property
    def expected(self) -> str:
        """Return what may be written."""
        if self.type in SCALARS:
            return SCALARS[self.type]
        if typing.get_origin(self.type) is Literal:
            return " or ".join(f'"{choice}"' for choice in typing.get_args(self.type))
        if self.scalar is not None:
            return f"{SCALARS[self.scalar]}, or an array of texts"
        if self.holds_lists:
            return "a table of texts and arrays of texts"
        return "an array of texts" if self.is_list else "a table"

    @property
    def scalar(self) -> type | None:
        """What it is if it is one value and not several texts; None if it cannot be either."""
        choices = _choices(self.type)
        if len(choices) == 1 or not any(typing.get_origin(c) is Sequence for c in choices):
            return None
        return next((choice for choice in choices if choice in SCALARS), None)

    @property
    def is_list(self) -> bool:
        """Whether it holds several texts."""
        return typing.get_origin(self.type) in (Sequence, tuple)

    @property
    def holds_lists(self) -> bool:
        """Whether it is a table, and an entry of it may be several texts."""
        of = typing.get_args(self.type)[1:] if self.is_table else ()
        return any(typing.get_origin(choice) is Sequence for o in of for choice in _choices(o))

    @property
    def is_table(self) -> bool:
        """Whether it holds names of the user's own choice."""
        return typing.get_origin(self.type) is Mapping


@cache
def kinds() -> Mapping[str, type]:
    """Find every connector whose settings can be written down."""
    return _found("read", "codec")


@cache
def store_kinds() -> Mapping[str, type]:
    """Find every sink that is a store, in batches at least, and can be written down."""
    return dict(sorted((_found("open") | _found("in_batches")).items()))


@cache
def destination_kinds() -> Mapping[str, type]:
    """Find every destination of alerts whose settings can be written down."""
    return _found("courier", "alert_faults")


@cache
def written_kinds() -> tuple[type, ...]:
    """All of these."""
    return (*kinds().values(), *store_kinds().values(), *destination_kinds().values())


def _found(*offers: str) -> dict[str, type]:
    """Find the dataclasses of systems that offer something."""
    found = {}
    for name in _modules():
        for kind in vars(import_module(name)).values():
            is_its_own = is_dataclass(kind) and getattr(kind, "__module__", "") == name
            if is_its_own and isinstance(kind, type) and all(hasattr(kind, o) for o in offers):
                found[name_of(kind)] = kind
    return {name: kind for name, kind in sorted(found.items()) if _can_be_written(kind)}


def _modules() -> Iterator[str]:
    """List the modules with the settings that users write."""
    for module in pkgutil.walk_packages(systems.__path__, f"{systems.__name__}."):
        if module.name.endswith(_WRITTEN_IN):
            yield module.name


def name_of(kind: type) -> str:
    """Name a connector as profiles do."""
    return kind.__name__.lower()


@cache
def keys_of(kind: type) -> Mapping[str, Key]:
    """Return the keys of a kind of connector, or of a part of its settings."""
    keys = (_key(kind, field) for field in fields(kind))
    return {key.name: key for key in keys if key is not None}


def _can_be_written(kind: type) -> bool:
    """Return whether TOML can express all that it requires: no function or object of the user's."""
    required = {f.name for f in fields(kind) if f.default is f.default_factory is MISSING}
    own = keys_of(kind).keys() - {"format", *(f.name for f in fields(RecordOptions))}
    return bool(own) and required <= {*own, *INHERITED}


def _key(kind: type, field: Field[Any]) -> Key | None:
    if field.name.startswith("_") or field.name in INHERITED or not field.init:
        return None
    try:
        text = field.type
        declared = _written(eval(text, _names(kind)) if isinstance(text, str) else text)
    except NameError:
        return None
    is_simple = declared in SCALARS or is_dataclass(declared) or len(_choices(declared)) > 1
    if not is_simple and typing.get_origin(declared) not in (Literal, Mapping, Sequence, tuple):
        return None
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return Key(field.name, declared, default)


def _names(kind: type) -> dict[str, Any]:
    return vars(sys.modules[kind.__module__]) | _TYPING_ONLY


def _choices(declared: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(declared) in (typing.Union, types.UnionType)
    return typing.get_args(declared) if is_union else (declared,)


def _written(declared: Any) -> Any:
    if typing.get_origin(declared) not in (typing.Union, types.UnionType):
        return declared
    choices = [choice for choice in typing.get_args(declared) if choice is not type(None)]
    if len(choices) == 1:
        return choices[0]
    # What may be an object of the user's in code is a text in a file.
    is_list = any(typing.get_origin(choice) is Sequence for choice in choices)
    return str if str in choices and not is_list else declared

"""Values in the header of a SQL file: each is read as the default of its option."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.model.dataset import Expectations
from millstream.model.duration import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


UNKNOWN = object()
_BOOLEANS = {"true": True, "false": False}
_LIKE: Mapping[object, object] = {"int": 0, "float": 0.0, "bool": False, "Sequence[str]": ()}
"""What is read as the default of an option would be, if it had one; by its declared type."""
EXPECTED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    timedelta: "a length of time, such as 10 minutes",
}


def default_of(name: str, known: Mapping[str, object]) -> object:
    """Find what an option is by default; one of a mapping is any text."""
    owner = _mapping(name, known)
    if owner is not None:
        return None if owner != name else UNKNOWN
    return known.get(name, UNKNOWN)


def _mapping(name: str, known: Mapping[str, object]) -> str | None:
    """Find the option that holds names of the user's own choice, and this one among them."""
    parts = name.split(".")
    above = (".".join(parts[:n]) for n in range(1, len(parts) + 1))
    return next((owner for owner in above if isinstance(known.get(owner), dict)), None)


def read_value(text: str, default: object) -> object:
    """Read a value of the same kind as a default.

    Raises:
        ValueError: The text is none.
        KeyError: It is neither true nor false.
    """
    match default:
        case _Union():
            return default.read(text)
        case bool():
            return _BOOLEANS[text.lower()]
        case int() | float():
            return type(default)(text)
        case timedelta():
            return parse_duration(text)
        case tuple():
            return _names(text)
    if not text:
        raise ValueError(text)
    return text


def _names(text: str) -> tuple[str, ...]:
    """Read names between commas, or an array of texts."""
    found = several_texts(text)
    names = text.split(",") if isinstance(found, str) else found
    return tuple(name.strip() for name in names if name.strip())


def _flag_or_names(text: str) -> bool | tuple[str, ...]:
    flag = _BOOLEANS.get(text.lower())
    return _names(text) if flag is None else flag


def several_texts(text: str) -> str | tuple[str, ...]:
    """Read an array of texts, as JSON has it; anything else is one text."""
    try:
        found = json.loads(text) if text.startswith("[") else None
    except ValueError:
        return text
    are_texts = isinstance(found, list) and all(isinstance(each, str) for each in found)
    return tuple(found) if found and are_texts else text


def options_of(options: type, kept: type) -> dict[str, object]:
    """Return the options of a kind of dataset, each with its default."""
    defaults = defaults_of(Expectations) | defaults_of(kept)
    return {option: defaults.get(option) for option in options.__annotations__}


class _Union(NamedTuple):
    """Stands for the default of what may be one value or several."""

    read: Callable[[str], object]


_UNIONS: Mapping[object, object] = {
    "str | Sequence[str]": _Union(several_texts),
    "bool | Sequence[str]": _Union(_flag_or_names),
}
"""By its declared type."""


def flat_options(kind: Any) -> dict[str, object]:
    """Return the options of a connector and their defaults; parts of an option as `option.part`."""
    types = {f.name: f.type for f in fields(kind)}
    found: dict[str, object] = {}
    for option, declared in defaults_of(kind).items():
        default = _LIKE.get(types[option]) if declared is MISSING else declared
        default = _UNIONS.get(types[option], default)
        parts = flat_options(default) if is_dataclass(default) else {}
        found |= {f"{option}.{part}": d for part, d in parts.items()} or {option: default}
    return found


def defaults_of(kind: Any) -> dict[str, object]:
    """Return the defaults of a frozen class, without fields that are not compared."""
    return {
        f.name: f.default if f.default_factory is MISSING else f.default_factory()
        for f in fields(kind)
        if f.compare
    }


def nested_options(options: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """Group options such as `retry.for` into one value each."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        option, dot, part = name.partition(".")
        found[option] = {**found.get(option, {}), part: value} if dot else value
    defaults: dict[str, Any] = defaults_of(kind)
    for option, default in defaults.items():
        if option in found and is_dataclass(default):
            parts: Any = default
            found[option] = replace(parts, **nested_options(found[option], default))
    return found

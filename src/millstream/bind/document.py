"""What can be written in `millstream.toml`, for editors and for the reference page."""

from __future__ import annotations

import typing
from dataclasses import is_dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from millstream.bind.kind import Key, destination_kinds, keys_of, kinds, store_kinds
from millstream.model.duration import to_text
from millstream.settings.profile import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", timedelta: "string"}
_OPEN = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
_NESTED = {"type": "object"}


def json_schema() -> dict[str, Any]:
    """Describe the file in JSON Schema."""
    sources = {"anyOf": [_source(name, kind) for name, kind in kinds().items()]}
    stores = {"anyOf": [_source(name, kind) for name, kind in store_kinds().items()]}
    told = {"anyOf": [_source(name, kind) for name, kind in destination_kinds().items()]}
    shapes: dict[str, dict[str, Any]] = {
        "home": {"type": "string"},
        "master": {"type": "string"},
        # Unquoted, the names of Spark settings are tables in tables.
        "spark": _NESTED,
        "sources": {"type": "object", "additionalProperties": sources},
        "serve": {"type": "object", "additionalProperties": stores},
        "alert": {"type": "object", "additionalProperties": told},
    }
    properties = {key: shapes[key] | {"description": told} for key, told in KEYS.items()}
    profile = {"type": "object", "properties": properties, "additionalProperties": False}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "millstream.toml",
        "type": "object",
        "properties": {"profile": {"type": "object", "additionalProperties": profile}},
        "additionalProperties": False,
    }


def reference() -> str:
    """List the keys as tables in Markdown."""
    lines = ["| key of a profile | says |", "|---|---|"]
    lines += [f"| `{key}` | {told} |" for key, told in KEYS.items()]
    for name, kind in {**kinds(), **store_kinds(), **destination_kinds()}.items():
        lines += ["", f'| `kind = "{name}"` | write | default |', "|---|---|---|"]
        lines += [f"| `{key}` | {told} | {default} |" for key, told, default in _rows(kind)]
    return "\n".join(lines) + "\n"


def _rows(kind: type, above: str = "") -> Iterator[tuple[str, str, str]]:
    for key in keys_of(kind).values():
        if is_dataclass(key.type):
            yield from _rows(typing.cast("type", key.type), f"{above}{key.name}.")
        else:
            yield f"{above}{key.name}", key.expected, _default(key)


def _default(key: Key) -> str:
    if key.is_required:
        return "required"
    if isinstance(key.default, timedelta):
        return f"`'{to_text(key.default)}'`"
    is_empty = key.default is None or key.default in ({}, ())
    return "" if is_empty else f"`{_toml(key.default)}`"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)


def _source(name: str, kind: type) -> dict[str, Any]:
    """Describe a source; what a kind requires may be in the code if the kind is not named."""
    shape = _object(kind)
    shape["properties"] = {"kind": {"const": name}, **shape["properties"]}
    required = [key.name for key in keys_of(kind).values() if key.is_required]
    return shape | ({"dependencies": {"kind": required}} if required else {})


def _object(kind: type) -> dict[str, Any]:
    properties = {key.name: _shape(key) for key in keys_of(kind).values()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _shape(key: Key) -> dict[str, Any]:
    if is_dataclass(key.type):
        return _object(typing.cast("type", key.type))
    if key.is_table:
        return _OPEN
    if key.is_list:
        return {"type": "array", "items": {"type": "string"}}
    if typing.get_origin(key.type) is Literal:
        return {"enum": list(typing.get_args(key.type))}
    return {"type": _TYPES[key.type]}

"""What can be written in `millstream.toml`, for editors and for the reference page."""

from __future__ import annotations

import typing
from dataclasses import is_dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from millstream.bind.kind import Key, destination_kinds, keys_of, kinds, store_kinds
from millstream.bind.run_keys import EXPECTED, SHAPES, run_keys_of
from millstream.model.duration import to_text
from millstream.settings.profile import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", timedelta: "string"}
_OPEN = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_OPEN_LISTS = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "string"}, _TEXTS]},
}
_NESTED = {"type": "object"}


def json_schema() -> dict[str, Any]:
    """Describe the file in JSON Schema."""
    sources = _any_of("sources", kinds())
    stores = _any_of("serve", store_kinds())
    destination = _any_of("alert", destination_kinds())
    tables = {
        "type": "object",
        "properties": _run_shapes("tables"),
        "additionalProperties": False,
    }
    shapes: dict[str, dict[str, Any]] = {
        "home": {"type": "string"},
        "master": {"type": "string"},
        "keep_versions": {"type": "string"},
        # Unquoted, the names of Spark settings are tables in tables.
        "spark": _NESTED,
        "sources": {"type": "object", "additionalProperties": sources},
        "serve": {"type": "object", "additionalProperties": stores},
        "alert": {"type": "object", "additionalProperties": destination},
        "tables": {"type": "object", "additionalProperties": tables},
    }
    properties = {
        key: shapes[key] | {"description": description} for key, description in KEYS.items()
    }
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
    lines += [f"| `{key}` | {description} |" for key, description in KEYS.items()]
    lines += ["", "| key of every dataset | write | in |", "|---|---|---|"]
    sections = ("sources", "serve", "alert", "tables")
    for key, expected in EXPECTED.items():
        where = ", ".join(f"`{section}`" for section in sections if key in run_keys_of(section))
        lines.append(f"| `{key}` | {expected} | {where} |")
    for name, kind in {**kinds(), **store_kinds(), **destination_kinds()}.items():
        lines += ["", f'| `kind = "{name}"` | write | default |', "|---|---|---|"]
        lines += [
            f"| `{key}` | {description} | {default} |" for key, description, default in _rows(kind)
        ]
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


def _any_of(section: str, known: Mapping[str, type]) -> dict[str, Any]:
    return {"anyOf": [_source(name, kind, _run_shapes(section)) for name, kind in known.items()]}


def _run_shapes(section: str) -> dict[str, Any]:
    return {key: SHAPES.get(key, {"type": "string"}) for key in run_keys_of(section)}


def _source(name: str, kind: type, run_shapes: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a source; what a kind requires may be in the code if the kind is not named."""
    shape = _object(kind)
    shape["properties"] = {"kind": {"const": name}, **shape["properties"], **run_shapes}
    required = [key.name for key in keys_of(kind).values() if key.is_required]
    return shape | ({"dependencies": {"kind": required}} if required else {})


def _object(kind: type) -> dict[str, Any]:
    properties = {key.name: _shape(key) for key in keys_of(kind).values()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _shape(key: Key) -> dict[str, Any]:
    if is_dataclass(key.type):
        return _object(typing.cast("type", key.type))
    if key.is_table:
        return _OPEN_LISTS if key.holds_lists else _OPEN
    if key.scalar is not None:
        return {"anyOf": [{"type": _TYPES[key.scalar]}, _TEXTS]}
    if key.is_list:
        return _TEXTS
    if typing.get_origin(key.type) is Literal:
        return {"enum": list(typing.get_args(key.type))}
    return {"type": _TYPES[key.type]}

"""How the default of a field, which is JSON, is written as a record would have it."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

from millstream.model.avro.kind import (
    AvroTextError,
    Dictionary,
    Enumeration,
    Fixed,
    Primitive,
    Record,
    Sequence,
    Union,
)

if TYPE_CHECKING:
    from millstream.model.avro.kind import AvroSchema, AvroType

_BITS = {"int": 31, "long": 63}


def encode(  # noqa: PLR0911 - a return for each type
    schema: AvroSchema, kind: AvroType, value: Any
) -> bytes:
    """Write a default in Avro's binary encoding.

    Raises:
        AvroTextError: It is not of its type.
    """
    kind = schema.definition(kind)
    match kind, value:
        case Union(), _:
            return _branch(schema, kind, value)
        case Sequence(items), list():
            inside = b"".join(encode(schema, items, item) for item in value)
            return (zigzag(len(value)) + inside if value else b"") + b"\0"
        case Dictionary(values), dict():
            pairs = ((k.encode(), encode(schema, values, v)) for k, v in value.items())
            inside = b"".join(zigzag(len(key)) + key + item for key, item in pairs)
            return (zigzag(len(value)) + inside if value else b"") + b"\0"
        case Record(parts=parts), dict():
            missing = next((p for p in parts if p.name not in value and not p.has_default), None)
            if missing is None:
                in_order = (value.get(p.name, p.default) for p in parts)
                return b"".join(
                    encode(schema, p.type, v) for p, v in zip(parts, in_order, strict=True)
                )
        case Enumeration(symbols=symbols), str() if value in symbols:
            return zigzag(symbols.index(value))
        case Fixed(size=size), str() if len(value) == size and _is_latin(value):
            return value.encode("latin-1")
        case Primitive(), _:
            if (raw := _primitive(kind.name, value)) is not None:
                return raw
    raise _not(kind, value)


def zigzag(n: int) -> bytes:
    """Write a whole number.

    >>> zigzag(-65).hex()
    '8101'
    """
    n, raw = (n << 1) ^ (n >> 63), bytearray()
    while n > 127:
        raw.append(n & 127 | 128)
        n >>= 7
    return bytes((*raw, n))


def _not(kind: AvroType, value: Any) -> AvroTextError:
    return AvroTextError(f"its default {json.dumps(value)} is not {kind}")


def _branch(schema: AvroSchema, kind: Union, value: Any) -> bytes:
    for number, branch in enumerate(kind.branches):
        try:
            return zigzag(number) + encode(schema, branch, value)
        except AvroTextError:
            continue
    raise _not(kind, value)


def _primitive(name: str, value: Any) -> bytes | None:  # noqa: PLR0911 - a return for each type
    match name, value:
        case "null", None:
            return b""
        case "boolean", bool():
            return bytes((value,))
        case (("int" | "long"), int()) if not isinstance(value, bool):
            return zigzag(value) if -(1 << _BITS[name]) <= value < 1 << _BITS[name] else None
        case (("float" | "double"), int() | float()) if not isinstance(value, bool):
            return _real(name, value)
        case "string", str():
            return zigzag(len(value.encode())) + value.encode()
        case "bytes", str() if _is_latin(value):
            return zigzag(len(value)) + value.encode("latin-1")
    return None


def _real(name: str, value: float) -> bytes | None:
    try:
        return struct.pack("<f" if name == "float" else "<d", value)
    except (OverflowError, struct.error):
        return None


def _is_latin(text: str) -> bool:
    return all(ord(character) < 256 for character in text)

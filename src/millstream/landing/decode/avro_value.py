"""What the functions that read Avro are made with: faults, numbers, and rows."""

from __future__ import annotations

import re
import struct
from decimal import Context, Decimal as Number
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from millstream.landing.decode.column import attribute
from millstream.landing.decode.reader import MalformedError
from millstream.model.data_type import MAX_PRECISION

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 70
"""Bits that ten bytes of a long have room for."""
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EXACT = Context(prec=2 * MAX_PRECISION)
_SHOWN_BITS = 128


class FaultError(MalformedError):
    """What is wrong with a record, and where in it."""

    def __init__(self, what: str, path: str = "") -> None:
        super().__init__(what)
        self.what, self.path = what, path

    def __str__(self) -> str:
        return f"{self.what}, at ${self.path}" if self.path else self.what


FAULTS = (FaultError, IndexError, struct.error, UnicodeDecodeError)
"""What reading a part raises."""


def within(error: Exception, part: str) -> FaultError:
    """Say in which part of its record a fault is."""
    if isinstance(error, FaultError):
        error.path = part + error.path
        return error
    if isinstance(error, UnicodeDecodeError):
        return FaultError(f"not UTF-8: {error.reason}", part)
    return FaultError("the record ends too early", part)


@cache
def row_type(width: int) -> Callable[..., Any]:
    """Make the class of records with so many columns."""
    fields: list[tuple[str, Any]] = [(attribute(i), Any) for i in range(width)]
    return msgspec.defstruct("Record", fields, gc=False)


def _long(raw: bytes, i: int) -> tuple[int, int]:
    """Read a whole number of any length; it and the place after it."""
    n = shift = 0
    while True:
        byte = raw[i]
        i += 1
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128 or shift == _LONGEST:
            break
    if byte > 127 or n >> 64:
        what = "expected long, got a greater number"
        raise FaultError(what)
    return (n >> 1) ^ -(n & 1), i


def _single(n: int) -> float:
    found: float = struct.unpack("<f", struct.pack("<f", n))[0]
    return found


def _uuid(raw: bytes) -> str:
    return str(UUID(bytes=raw))


def _scaled(n: int, scale: int) -> Number:
    return Number(n).scaleb(-scale, _EXACT)


def _shown(n: int, scale: int) -> str:
    bits = n.bit_length()
    return f"a number of {bits} bits" if bits > _SHOWN_BITS else f"{_scaled(n, scale):f}"


NAMES = {
    "Fault": FaultError,
    "FAULTS": FAULTS,
    "within": within,
    "long": _long,
    "float4": struct.Struct("<f").unpack_from,
    "float8": struct.Struct("<d").unpack_from,
    "single": _single,
    "is_uuid": _UUID.fullmatch,
    "uuid": _uuid,
    "scaled": _scaled,
    "shown": _shown,
}
"""What statements may use."""

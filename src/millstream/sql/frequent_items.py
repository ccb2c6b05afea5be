"""The most frequent items of Spark's approx_top_k sketches, read and merged without a JVM.

After the bytes of DataSketches, Spark appends how many nulls there were.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from millstream.sql.sketch_bytes import check_items

_NULLS = struct.Struct(">q")
_OFFSET = struct.Struct("<q")
_OFFSET_AT = 24
_EMPTY = 1
"""How many words come first in a sketch without items."""
_INTEGER = 9
"""Comes before each INT in Java's form of numbers."""
_FULL = 0.75
_LEAST_LG, _TRACKED = 3, 10_000

KINDS = {"string": "VARCHAR", "int": "INTEGER", "bigint": "BIGINT", "double": "DOUBLE"}
"""The types of items, and what DuckDB calls them."""


def top_of(kind: str, data: bytes | None, k: int) -> list[dict[str, Any]] | None:
    """Return the most frequent items, with how often each is there at most."""
    from datasketches import frequent_items_error_type

    if data is None:
        return None
    sketch, nulls = _read(kind, data)
    threshold = _offset_of(data)
    found = sketch.get_frequent_items(frequent_items_error_type.NO_FALSE_POSITIVES)
    counted = [(item, count) for item, count, *_ in found]
    if nulls > threshold:
        counted.append((None, nulls))
    counted.sort(key=lambda pair: -pair[1])
    return [{"item": item, "count": count} for item, count in counted[:k]]


def merge(kind: str, sketches: list[bytes | None], tracked: int) -> bytes:
    """Merge sketches of the items of a type."""
    from datasketches import frequent_items_sketch, frequent_strings_sketch

    size = max(_LEAST_LG, math.ceil(math.log2(math.ceil(tracked / _FULL))))
    make = frequent_strings_sketch if kind == "string" else frequent_items_sketch
    merged, nulls = make(size), 0
    for data in sketches:
        if data is not None:
            sketch, more = _read(kind, data)
            merged.merge(sketch)
            nulls += more
    packed = bytes(merged.serialize() if kind == "string" else merged.serialize(_serde(kind)))
    check_items(packed)
    return packed + _NULLS.pack(nulls)


def _read(kind: str, data: bytes) -> tuple[Any, int]:
    from datasketches import frequent_items_sketch, frequent_strings_sketch

    check_items(data)
    body, (nulls,) = data[: -_NULLS.size], _NULLS.unpack(data[-_NULLS.size :])
    if kind == "string":
        return frequent_strings_sketch.deserialize(body), nulls
    return frequent_items_sketch.deserialize(body, _serde(kind)), nulls


def _offset_of(data: bytes) -> int:
    return 0 if data[0] % 64 == _EMPTY else int(_OFFSET.unpack_from(data, _OFFSET_AT)[0])


def _serde(kind: str) -> Any:
    from datasketches import PyDoublesSerDe, PyLongsSerDe, PyObjectSerDe

    class Integers(PyObjectSerDe):  # type: ignore[misc]
        """Java's form of an INT."""

        def get_size(self, item: int) -> int:  # noqa: ARG002
            return 5

        def to_bytes(self, item: int) -> bytes:
            return struct.pack("<bi", _INTEGER, item)

        def from_bytes(self, data: bytes, offset: int) -> tuple[int, int]:
            return struct.unpack_from("<i", data, offset + 1)[0], 5

    return {"int": Integers, "bigint": PyLongsSerDe, "double": PyDoublesSerDe}[kind]()

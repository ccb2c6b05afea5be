"""How Avro records are read: bare, or after a header with the id of their schema."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.landing.decode.avro_code import compiled
from millstream.landing.decode.avro_value import FaultError, row_type
from millstream.landing.decode.column import arrow_type, attribute
from millstream.model.avro import resolve
from millstream.model.ddl import schema_fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.landing.decode.column import Build
    from millstream.model.avro import AvroSchemas
    from millstream.model.data_type import Atom, Decimal
    from millstream.model.schema import Schema

_HEADER = 5
"""A byte that is zero and the id of a schema in four, the greatest first."""


class AvroReader:
    """Reads Avro records into objects with an attribute for each column."""

    is_text = False

    def __init__(self, schema: Schema, schemas: AvroSchemas) -> None:
        width = len(schema.fields)
        self.blank = row_type(width)(*[None] * width)
        self.getters = [attrgetter(attribute(i)) for i in range(width)]
        self.read = _read(schema, schemas)

    def leaf(self, kind: Atom | Decimal) -> Build:
        """Make the function that turns values, which fit their type, into a column."""
        of = arrow_type(kind)
        return lambda values: pa.array(values, of)

    def fault(self, raw: bytes) -> str | None:
        """Say what is wrong, and where."""
        try:
            self.read(raw)
        except FaultError as error:
            return str(error)
        except RecursionError:
            return "nested too deeply"
        return None


@lru_cache(maxsize=32)
def _read(schema: Schema, schemas: AvroSchemas) -> Callable[[bytes], Any]:
    """Make the function that reads a record; once for all batches that a worker sees."""
    ways: dict[int | None, Callable[[bytes, int], Any]] = {}
    for number, writer in schemas.writers:
        step, faults = resolve(writer, schemas.reader, schema)
        if step is None:
            what = f"column {faults[0].column!r} cannot be read from Avro: {faults[0].why}"
            raise schema_fault(what, fix="run `millstream check`, which names all such columns")
        try:
            ways[number] = compiled(step)
        except FaultError as error:
            what = f"a default of the reader's Avro schema cannot be used: {error}"
            raise schema_fault(what, fix="mend the default, or declare a wider type") from None
    if None in ways:
        bare = ways[None]
        return lambda raw: bare(raw, 0)
    return _after_header(ways)


def _after_header(ways: dict[int | None, Callable[[bytes, int], Any]]) -> Callable[[bytes], Any]:
    known = ", ".join(map(str, ways))

    def read(raw: bytes) -> Any:
        number = int.from_bytes(raw[1:_HEADER], "big")
        way = ways.get(number)
        if raw[:1] != b"\0" or len(raw) < _HEADER or way is None:
            raise FaultError(_header_fault(raw, known))
        return way(raw, _HEADER)

    return read


def _header_fault(raw: bytes, known: str) -> str:
    if not raw:
        return "empty record"
    if raw[0]:
        return f"expected a header that begins with byte 0, got byte {raw[0]}"
    if len(raw) < _HEADER:
        return f"the record ends within its header of {_HEADER} bytes"
    return f"no schema is given for id {int.from_bytes(raw[1:_HEADER], 'big')}, only for {known}"

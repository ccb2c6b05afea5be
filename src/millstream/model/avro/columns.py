"""The columns that a record of Avro becomes, type by type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.model.avro.kind import (
    AvroSchema,
    AvroType,
    Dictionary,
    Enumeration,
    Fixed,
    Logical,
    Primitive,
    Record,
    Sequence,
    Union,
)
from millstream.model.data_type import Array, Atom, Decimal, Field, Map, Struct, Type
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLAIN: Mapping[str, Type] = {
    "boolean": Atom.BOOLEAN,
    "int": Atom.INT,
    "long": Atom.BIGINT,
    "float": Atom.FLOAT,
    "double": Atom.DOUBLE,
    "bytes": Atom.BINARY,
    "string": Atom.STRING,
}
_LOGICAL: Mapping[str, Type] = {
    "date": Atom.DATE,
    "uuid": Atom.STRING,
    **{f"timestamp-{unit}": Atom.TIMESTAMP for unit in ("millis", "micros", "nanos")},
    **{f"local-timestamp-{unit}": Atom.TIMESTAMP_NTZ for unit in ("millis", "micros", "nanos")},
}


def columns_of(schema: AvroSchema) -> Schema:
    """Return a column for each field that can be one: no unions of several types, no recursion."""
    fields = (_field(part.name, part.type, schema, 0) for part in schema.root.parts)
    return Schema(tuple(field for field in fields if field is not None))


_DEEPEST = 12


def _field(name: str, kind: AvroType, schema: AvroSchema, depth: int) -> Field | None:
    found = _type(kind, schema, depth)
    return None if found is None or name.startswith("_") else Field(name, found)


def _type(kind: AvroType, schema: AvroSchema, depth: int) -> Type | None:
    found: Type | None = None
    match schema.definition(kind):
        case _ if depth > _DEEPEST:
            pass
        case (Primitive() | Fixed()) as leaf:
            found = _leaf(leaf)
        case Enumeration():
            found = Atom.STRING
        case Sequence(items):
            found = (of := _type(items, schema, depth + 1)) and Array(of)
        case Dictionary(values):
            found = (of := _type(values, schema, depth + 1)) and Map(of)
        case Union(branches):
            there = [branch for branch in branches if branch != Primitive("null")]
            found = _type(there[0], schema, depth) if len(there) == 1 else None
        case Record(parts=parts):
            fields = (_field(part.name, part.type, schema, depth + 1) for part in parts)
            columns = tuple(field for field in fields if field is not None)
            found = Struct(columns) if columns else None
    return found


def _leaf(kind: Primitive | Fixed) -> Type | None:
    plain = Atom.BINARY if isinstance(kind, Fixed) else _PLAIN.get(kind.name)
    match kind.logical:
        case Logical("decimal", precision, scale):
            return Decimal(precision, scale)
        case Logical(name):
            return _LOGICAL.get(name, plain)
    return plain

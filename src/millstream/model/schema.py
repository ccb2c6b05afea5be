"""What a record looks like: named, typed columns, as Spark and Delta both write them down."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from millstream.errors import SchemaError
from millstream.model.data_type import (
    Array,
    Atom,
    Decimal,
    Field,
    Map,
    Struct,
    Type,
    field_ddl,
    type_ddl,
)
from millstream.model.ddl import KNOWN_TYPES, distinct_fields, parse_ddl, schema_fault

RESERVED_PREFIX = "_"
"""Columns that landing adds start with this; a declared column may not."""


@runtime_checkable
class SparkSchema(Protocol):
    """What `pyspark.sql.types.StructType` offers and `Schema.parse` needs."""

    def jsonValue(self) -> dict[str, Any]:  # noqa: N802
        """Return the schema as Spark's JSON."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a record, in order.

    >>> Schema.parse("vehicle STRING, at TIMESTAMP NOT NULL").names
    ('vehicle', 'at')
    """

    fields: tuple[Field, ...]

    @classmethod
    def parse(cls, value: object) -> Schema:
        """Read Spark's DDL text or a StructType; a schema is itself.

        Raises:
            SchemaError: the text is not a schema, or landing cannot hold it.
        """
        if isinstance(value, Schema):
            return value
        if isinstance(value, str):
            fields = parse_ddl(value)
        elif isinstance(value, SparkSchema):
            fields = _fields_from_json(value.jsonValue())
        else:
            what = f"expected DDL text or a StructType, got {type(value).__name__}"
            raise schema_fault(what, fix="give text such as 'id BIGINT, at TIMESTAMP NOT NULL'")
        for field in fields:
            if not field.name or "\0" in field.name:
                has = "a null character in its name" if field.name else "no name"
                what = f"column {field.name!r} has {has}"
                raise schema_fault(
                    what, fix='name it otherwise, and rename={field: "name"} reads it'
                )
            if field.name.startswith(RESERVED_PREFIX):
                what = f"column {field.name!r} starts with {RESERVED_PREFIX!r}"
                raise schema_fault(what, fix="rename it: such names are kept for landing's own")
        return cls(fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(field.name for field in self.fields)

    def with_nulls(self) -> Schema:
        """Allow null everywhere, in nested types too.

        >>> Schema.parse("p STRUCT<a: INT NOT NULL> NOT NULL").with_nulls().to_ddl()
        'p STRUCT<a: INT>'
        """
        return Schema(tuple(map(_with_nulls, self.fields)))

    def to_json(self) -> str:
        """Write the JSON that Spark's StructType and Delta's Schema read."""
        return json.dumps(_to_json(Struct(self.fields)))

    def to_ddl(self) -> str:
        """Write the DDL text that Spark reads.

        >>> Schema.parse("n int, tags array<string>").to_ddl()
        'n INT, tags ARRAY<STRING>'
        """
        return ", ".join(field_ddl(field, " ") for field in self.fields)


def json_ddl(value: Any) -> str:
    """Write one type of Spark's JSON as DDL; one that has no word here, as it stands.

    >>> json_ddl("long"), json_ddl("interval")
    ('BIGINT', 'INTERVAL')
    """
    try:
        return type_ddl(_from_json(value))
    except SchemaError:
        return value.upper() if isinstance(value, str) else json.dumps(value)


def _with_nulls(field: Field) -> Field:
    return Field(field.name, _type_with_nulls(field.type))


def _type_with_nulls(kind: Type) -> Type:
    match kind:
        case Array():
            return Array(_type_with_nulls(kind.element))
        case Map():
            return Map(_type_with_nulls(kind.value))
        case Struct():
            return Struct(tuple(map(_with_nulls, kind.fields)))
        case _:
            return kind


def _to_json(kind: Type) -> str | dict[str, Any]:
    match kind:
        case Atom():
            return kind.value
        case Decimal():
            return f"decimal({kind.precision},{kind.scale})"
        case Array():
            element = _to_json(kind.element)
            return {"type": "array", "elementType": element, "containsNull": kind.contains_null}
        case Map():
            return {
                "type": "map",
                "keyType": "string",
                "valueType": _to_json(kind.value),
                "valueContainsNull": kind.contains_null,
            }
        case Struct():
            fields = [
                {"name": f.name, "type": _to_json(f.type), "nullable": f.nullable, "metadata": {}}
                for f in kind.fields
            ]
            return {"type": "struct", "fields": fields}


def _from_json(value: Any) -> Type:
    match value:
        case {"type": "array", "elementType": element, "containsNull": contains_null}:
            return Array(_from_json(element), contains_null)
        case {"type": "map", "keyType": "string", "valueType": of, "valueContainsNull": null}:
            return Map(_from_json(of), null)
        case {"type": "struct"}:
            return Struct(_fields_from_json(value))
        case str() if decimal := re.fullmatch(r"decimal\((\d+),(\d+)\)", value):
            return Decimal(int(decimal[1]), int(decimal[2]))
        case str() if value in _BY_JSON_NAME:
            return _BY_JSON_NAME[value]
    what = f"type {value!r} is not supported"
    raise schema_fault(what, fix=KNOWN_TYPES)


def _fields_from_json(value: dict[str, Any]) -> tuple[Field, ...]:
    fields = (Field(f["name"], _from_json(f["type"]), f["nullable"]) for f in value["fields"])
    return distinct_fields(fields)


_BY_JSON_NAME = {atom.value: atom for atom in Atom}

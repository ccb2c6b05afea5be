"""Schema enforcement: an answer fits its table, or is refused with the column named."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.lake.delta import FencedTable
from millstream.lake.log import is_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from millstream.errors import Location


@dataclass(frozen=True, slots=True)
class Shape:
    """What a table must look like."""

    name: str
    schema: str
    """Spark's JSON."""
    at: Location
    partition_by: tuple[str, ...] = ()
    evolve: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


def open_table(path: Path, shape: Shape, *, epoch: int) -> FencedTable:
    """Make the table or hold the answer to it, and shut earlier drivers out.

    Raises:
        SCHEMA_CHANGED: A column has another type.
        COLUMN_ADDED: A column is new, and evolution was not asked for.
        COLUMN_DROPPED: A column is gone, and evolution was not asked for.
        LAYOUT_CHANGED: The table is partitioned by other columns.
    """
    make_table(path, shape)
    table = FencedTable(path, name=shape.name, epoch=epoch)
    added = columns_to_add(table, shape)
    table.take()
    if added:
        table.add_columns(added)
    return table


def make_table(path: Path, shape: Shape) -> None:
    """Make an empty table, unless there is one."""
    if not is_table(path):
        FencedTable.create(
            path,
            schema=nullable(shape.schema),
            partition_by=shape.partition_by,
            properties=shape.properties,
        )


def columns_to_add(table: FencedTable, shape: Shape) -> str | None:
    """Hold an answer to a table; give the columns that it lacks, as Spark's JSON, if any.

    Raises:
        SCHEMA_CHANGED: A column has another type.
        COLUMN_ADDED: A column is new, and evolution was not asked for.
        COLUMN_DROPPED: A column is gone, and evolution was not asked for.
        LAYOUT_CHANGED: The table is partitioned by other columns.
    """
    added = _compare(_columns(table.schema), _columns(nullable(shape.schema)), shape)
    if table.partition_by != shape.partition_by:
        raise fault(
            "LAYOUT_CHANGED",
            at=shape.at,
            table=shape.name,
            option="partition_by",
            was=str(list(table.partition_by)),
            now=str(list(shape.partition_by)),
        )
    return json.dumps({"type": "struct", "fields": added}) if added else None


def nullable(schema: str) -> str:
    """Allow null everywhere: what must not be null is a rule, not a crash."""
    return json.dumps(_nullable(json.loads(schema)))


def _compare(
    held: Mapping[str, dict[str, Any]], wanted: Mapping[str, dict[str, Any]], shape: Shape
) -> list[dict[str, Any]]:
    for name, column in wanted.items():
        if name in held and _bare(held[name]["type"]) != _bare(column["type"]):
            raise fault(
                "SCHEMA_CHANGED",
                at=shape.at,
                column=name,
                table=shape.name,
                was=_words(held[name]["type"]),
                now=_words(column["type"]),
            )
    added = [column for name, column in wanted.items() if name not in held]
    if not shape.evolve:
        for column in added:
            raise fault("COLUMN_ADDED", at=shape.at, table=shape.name, column=column["name"])
        for name in held:
            if name not in wanted:
                raise fault("COLUMN_DROPPED", at=shape.at, table=shape.name, column=name)
    return added


def _columns(schema: str) -> dict[str, dict[str, Any]]:
    return {column["name"]: column for column in json.loads(schema)["fields"]}


def _nullable(kind: Any) -> Any:
    if not isinstance(kind, dict):
        return kind
    changed = {name: _nullable(value) for name, value in kind.items()}
    for name in ("nullable", "containsNull", "valueContainsNull"):
        if name in changed:
            changed[name] = True
    if "fields" in changed:
        changed["fields"] = [_nullable(field) | {"metadata": {}} for field in changed["fields"]]
    return changed


def _bare(kind: Any) -> Any:
    bare = _nullable(kind)
    return json.dumps(bare, sort_keys=True)


def _words(kind: Any) -> str:
    if not isinstance(kind, dict):
        return str(kind).upper()
    match kind["type"]:
        case "array":
            return f"ARRAY<{_words(kind['elementType'])}>"
        case "map":
            return f"MAP<{_words(kind['keyType'])}, {_words(kind['valueType'])}>"
        case _:
            inner = (f"{column['name']}: {_words(column['type'])}" for column in kind["fields"])
            return f"STRUCT<{', '.join(inner)}>"

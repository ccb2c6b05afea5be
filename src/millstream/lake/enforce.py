"""Schema enforcement: an answer fits its table, or is refused with the column named."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from millstream.errors import fault, raise_faults
from millstream.lake.delta import FencedTable
from millstream.lake.log import is_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from millstream.errors import Location, MillstreamError


@dataclass(frozen=True, slots=True)
class TableShape:
    """What a table must look like."""

    name: str
    schema: str
    """Spark's JSON."""
    at: Location
    partition_by: tuple[str, ...] = ()
    evolve: bool = False
    optional: tuple[str, ...] = ()
    """Columns that may come and go all the same."""
    properties: Mapping[str, str] = field(default_factory=dict)


def open_table(path: Path, shape: TableShape, *, epoch: int) -> FencedTable:
    """Make the table or check the answer against it, and shut earlier drivers out.

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


def make_table(path: Path, shape: TableShape) -> None:
    """Make an empty table, unless there is one."""
    if not is_table(path):
        FencedTable.create(
            path,
            schema=nullable(shape.schema),
            partition_by=shape.partition_by,
            properties=shape.properties,
        )


def columns_to_add(table: FencedTable, shape: TableShape) -> str | None:
    """Check an answer against a table; return the columns that it lacks, as Spark's JSON, if any.

    Raises:
        MillstreamError: The answer does not fit, as `stored_faults` finds.
    """
    raise_faults(tuple(_shape_faults(table.schema, table.partition_by, shape)))
    held, wanted = _columns(table.schema), _columns(nullable(shape.schema))
    added = [column for name, column in wanted.items() if name not in held]
    return json.dumps({"type": "struct", "fields": added}) if added else None


def stored_faults(path: Path, shape: TableShape) -> Iterator[MillstreamError]:
    """Find what an answer may not change in its table, if there is one.

    A column has another type; one is new or gone, and evolution was not asked for; or the table is
    partitioned by other columns.
    """
    if is_table(path):
        table = DeltaTable(str(path))
        partition_by = tuple(table.metadata().partition_columns)
        yield from _shape_faults(str(table.schema().to_json()), partition_by, shape)


def with_stored(path: Path, schema: str) -> str:
    """Return the columns that readers of a table see: those of an answer, and earlier ones."""
    wanted = json.loads(schema)
    names = {column["name"] for column in wanted["fields"]}
    held = json.loads(DeltaTable(str(path)).schema().to_json())["fields"] if is_table(path) else []
    wanted["fields"] += [column for column in held if column["name"] not in names]
    return json.dumps(wanted)


def nullable(schema: str) -> str:
    """Allow null everywhere: what must not be null is a rule, not a crash."""
    return json.dumps(_nullable(json.loads(schema)))


def _shape_faults(
    schema: str, partition_by: tuple[str, ...], shape: TableShape
) -> Iterator[MillstreamError]:
    held, wanted = _columns(schema), _columns(nullable(shape.schema))
    for name, column in wanted.items():
        if name in held and _bare(held[name]["type"]) != _bare(column["type"]):
            yield fault(
                "SCHEMA_CHANGED",
                at=shape.at,
                column=name,
                table=shape.name,
                was=_words(held[name]["type"]),
                now=_words(column["type"]),
            )
    if not shape.evolve:
        for name in (name for name in wanted if name not in held):
            if name not in shape.optional:
                yield fault("COLUMN_ADDED", at=shape.at, table=shape.name, column=name)
        for name in (name for name in held if name not in wanted):
            if name not in shape.optional:
                yield fault("COLUMN_DROPPED", at=shape.at, table=shape.name, column=name)
    if partition_by != shape.partition_by:
        yield fault(
            "LAYOUT_CHANGED",
            at=shape.at,
            table=shape.name,
            option="partition_by",
            was=str(list(partition_by)),
            now=str(list(shape.partition_by)),
        )


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

"""Rows as JSON, one object each, exactly as Spark writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from millstream.serve.shape import NESTED
from millstream.serve.value import as_time_text, number, plain, refusing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.serve.shape import Column

    Values = pa.ChunkedArray[Any]

_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=str)
encode = _encoder.encode


def as_json(rows: pa.Table, columns: Sequence[Column]) -> list[bytes]:
    """Write rows as JSON; as in Spark, a null is no field.

    >>> from millstream.serve.shape import Column
    >>> as_json(pa.table({"n": [1, None], "t": ["a", "b"]}), [Column("n", "long")])
    [b'{"n":1}', b'{}']
    """
    return [encode(row) for row in as_objects(rows, columns)]


def as_objects(
    rows: pa.Table, columns: Sequence[Column], *, nulls: bool = False
) -> list[dict[str, Any]]:
    """Return rows as objects that JSON can hold, with or without null fields."""
    taken = {column.name: _plain(rows.column(column.name)) for column in columns}
    objects: list[dict[str, Any]] = _listed(pa.table(taken)) if taken else []
    for column in columns:
        name, kind = column.name, rows.column(column.name).type
        if column.type == NESTED:
            for row in objects:
                row[name] = _nested(row[name], kind, nulls=nulls)
        elif pa.types.is_floating(kind) and not _is_finite(taken[name]):
            for row in objects:
                row[name] = number(row[name])
    if nulls or not any(values.null_count for values in taken.values()):
        return objects
    return [{name: v for name, v in row.items() if v is not None} for row in objects]


def _listed(rows: pa.Table) -> list[dict[str, Any]]:
    try:
        return rows.to_pylist()
    except (ValueError, OverflowError):
        for name in rows.column_names:
            with refusing(name):
                rows.column(name).to_pylist()
        raise


def _plain(values: Values) -> Values:
    """Turn times into texts, a column at a time, and numbers of 32 bits into their shortest."""
    kind = values.type
    if pa.types.is_float32(kind):
        return values.cast(pa.string()).cast(pa.float64())
    if pa.types.is_date(kind):
        return values.cast(pa.string())
    return as_time_text(values, "T") if pa.types.is_timestamp(kind) else values


def _is_finite(values: Values) -> bool:
    return bool(pc.all(pc.is_finite(values)).as_py() in (True, None))


def _nested(value: Any, kind: pa.DataType, *, nulls: bool) -> Any:
    nested = plain(value, kind)
    return nested if nulls else _without_nulls(nested)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(v) for name, v in value.items() if v is not None}
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value

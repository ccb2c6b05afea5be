"""Rows of an outbox as objects of Python, also those that Python cannot take as they are.

Spark keeps whatever bytes a text was made of, and times of any year; one such value must not keep
the other rows from being sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.serve.value import as_objects, named

if TYPE_CHECKING:
    from collections.abc import Mapping

_BARE = (
    (pa.types.is_string, pa.binary()),
    (pa.types.is_timestamp, pa.int64()),
    (pa.types.is_date32, pa.int32()),
)


def objects_of(rows: pa.Table) -> tuple[list[dict[str, Any]], bool]:
    r"""Return rows as dicts, and whether a value is written as text because Python lacks it.

    A byte that is no text becomes `\xff`, so that texts that differ still do; a time that Python
    does not have becomes text.
    """
    try:
        return as_objects(rows), False
    except (ValueError, OverflowError):
        return _as_text(rows), True


def _as_text(rows: pa.Table) -> list[dict[str, Any]]:
    kinds = {field.name: field.type for field in rows.schema}
    bare = {name: rows.column(name).cast(_bare(kind)) for name, kind in kinds.items()}
    return [_row(row, kinds) for row in pa.table(bare).to_pylist()]


def _row(row: Mapping[str, Any], kinds: Mapping[str, pa.DataType]) -> dict[str, Any]:
    return {name: named(_worded(row[name], kind), kind) for name, kind in kinds.items()}


def _bare(kind: pa.DataType) -> pa.DataType:
    """Return a type that holds the same values and that Python can always read."""
    if isinstance(kind, pa.MapType):
        return pa.map_(_bare(kind.key_type), _bare(kind.item_type))
    if isinstance(kind, pa.ListType):
        return pa.list_(_bare(kind.value_type))
    if isinstance(kind, pa.StructType):
        return pa.struct([field.with_type(_bare(field.type)) for field in kind])
    return next((bare for is_one, bare in _BARE if is_one(kind)), kind)


def _worded(value: Any, kind: pa.DataType) -> Any:
    """Convert a bare value back to its type, or to text."""
    if value is None:
        return None
    if isinstance(kind, pa.MapType):
        return [(_worded(k, kind.key_type), _worded(v, kind.item_type)) for k, v in value]
    if isinstance(kind, pa.ListType):
        return [_worded(v, kind.value_type) for v in value]
    if isinstance(kind, pa.StructType):
        return {field.name: _worded(value[field.name], field.type) for field in kind}
    if pa.types.is_string(kind):
        return value.decode(errors="backslashreplace")
    return _moment(value, kind) if _bare(kind) != kind else value


def _moment(value: int, kind: pa.DataType) -> Any:
    moment: Any = pa.array([value], _bare(kind)).cast(kind)
    try:
        return moment[0].as_py()
    except (ValueError, OverflowError):
        plain = moment.cast(pa.timestamp("us")) if pa.types.is_timestamp(kind) else moment
        return plain.cast(pa.string())[0].as_py()

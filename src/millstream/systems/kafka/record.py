"""Rows as Kafka records: a key, a value, and a tombstone for a deleted row."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from millstream.serve.encode import as_json, as_objects, encode
from millstream.serve.shape import GONE
from millstream.serve.value import RowsRefusedError, as_texts, refusing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from millstream.serve.shape import Shape
    from millstream.systems.kafka.topic import RecordFormat

    Message = dict[str, Any]
    """As `produce_batch` takes it."""


class Encoder:
    """Makes the records of one dataset."""

    def __init__(self, records: RecordFormat, shape: Shape, writer: str) -> None:
        self._records, self._shape = records, shape
        self._app, _, self._dataset = writer.partition("/")
        self._columns = {column.name: column for column in shape.columns}
        self._keys = [self._columns[name] for name in shape.key]

    def messages(self, rows: pa.Table, batch: int) -> tuple[list[Message], Sequence[int]]:
        """Return the records of rows, and the number of the row that each describes."""
        keys, values = self._key_of(rows), self._values(rows, batch)
        messages: list[Message] = [
            {"key": key, "value": value} for key, value in zip(keys, values, strict=True)
        ]
        if self._records.format == "raw" and "headers" in self._columns:
            for message, headers in zip(messages, _listed(rows, "headers"), strict=True):
                message["headers"] = _pairs(headers or ())
        numbers: Sequence[int] = range(len(messages))
        if self._records.envelope and GONE in rows.column_names:
            # As in Debezium, a tombstone follows, so that compaction forgets the key.
            gone = _gone(rows)
            numbers = [n for n in numbers for _ in range(1 + gone[n])]
            ends = (i > 0 and numbers[i - 1] == n for i, n in enumerate(numbers))
            messages = [
                {"key": keys[n], "value": None} if is_end else messages[n]
                for n, is_end in zip(numbers, ends, strict=True)
            ]
        return messages, numbers

    def _key_of(self, rows: pa.Table) -> Sequence[bytes | str | None]:
        if not self._keys:
            is_raw = self._records.format == "raw" and "key" in self._columns
            return _listed(rows, "key") if is_raw else [None] * rows.num_rows
        if len(self._keys) > 1:
            return as_json(rows, self._keys)
        [column] = self._keys
        if column.type == "boolean":
            return [None if v is None else str(v).lower() for v in _listed(rows, column.name)]
        return [text for (text,) in as_texts(rows, self._keys)]

    def _values(self, rows: pa.Table, batch: int) -> Sequence[bytes | str | None]:
        gone = _gone(rows) if GONE in rows.column_names else None
        if self._records.envelope:
            return self._enveloped(rows, batch, gone)
        if self._records.format == "json":
            values: Sequence[bytes | str | None] = as_json(rows, self._shape.columns)
        else:
            values = _listed(rows, "value")
        if gone is None:
            return values
        return [None if is_gone else v for v, is_gone in zip(values, gone, strict=True)]

    def _enveloped(
        self, rows: pa.Table, batch: int, gone: Sequence[bool] | None
    ) -> Sequence[bytes | str | None]:
        """Return each row in Debezium's envelope: the operation, and the row before or after it."""
        source = {"connector": "millstream", "name": self._app, "table": self._dataset}
        common = {"source": {**source, "batch": batch}, "ts_ms": int(time.time() * 1000)}
        upsert = {"op": "c" if self._shape.mode == "append" else "u"} | common
        delete = {"op": "d"} | common
        objects = as_objects(rows, self._shape.columns, nulls=True)
        return [
            encode({"before": row, "after": None} | delete)
            if gone is not None and gone[number]
            else encode({"before": None, "after": row} | upsert)
            for number, row in enumerate(objects)
        ]


def _pairs(headers: Sequence[Any]) -> list[tuple[str, Any]]:
    if any(header is None or header["key"] is None for header in headers):
        why = "a header has no key"
        raise RowsRefusedError(why)
    return [(header["key"], header["value"]) for header in headers]


def _gone(rows: pa.Table) -> list[bool]:
    return [bool(is_gone) for is_gone in rows.column(GONE).to_pylist()]


def _listed(rows: pa.Table, column: str) -> Sequence[Any]:
    with refusing(column):
        return rows.column(column).to_pylist()

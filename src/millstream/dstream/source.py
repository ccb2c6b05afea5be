"""A functional program as a source of an App: what it makes is landed, judged and stored."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from millstream.dstream.context import StreamingContext
from millstream.lake.durable import sync_folder, sync_written
from millstream.model.data_type import Atom
from millstream.model.schema import Schema
from millstream.systems.record_source import ReceiverSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark import RDD
    from pyspark.sql.types import StructType

    from millstream.dstream.stream import DStream
    from millstream.landing.inbox import Inbox

_LOOK_EVERY_S = 0.2
_KEPT = 10
"""Landed files that stay for a while: a batch of the landing may be replayed after a crash."""
_HOME = ".program"


@dataclass(frozen=True, slots=True)
class DStreams(ReceiverSource):
    """Rows that a functional program makes: each of its batches is landed once.

    The program gets a StreamingContext and returns a DStream of tuples in the order of the columns,
    of dicts, or of Rows. Its journal and its state are in the home of the app.
    """

    program: Callable[[StreamingContext], DStream[Any]] = field(compare=False, repr=False)
    schema: str | StructType
    interval: float = 1.0
    """Seconds between two batches."""
    format: str = "json"

    def receive(self, inbox: Inbox) -> None:
        """Run the program until the app stops.

        Raises:
            MillstreamError: A batch of the program failed.
        """
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.getOrCreate()
        ssc = StreamingContext(spark.sparkContext, self.interval)  # type: ignore[arg-type]
        ssc.checkpoint(str(inbox.place / _HOME))
        landed = _Landed(inbox, Schema.parse(self.schema))
        self.program(ssc).foreachRDD(landed.write)
        live = ssc._start_beside(spark, f"program of {inbox.place.name}")
        try:
            while not inbox.is_closed and not live.wait(0):
                inbox.wait(_LOOK_EVERY_S)
        finally:
            live.stop(gracefully=False)


class _Landed:
    """The folder that the landing reads: a file for each batch, under its time.

    A batch that runs again writes the same file, which the landing knows already.
    """

    def __init__(self, inbox: Inbox, schema: Schema) -> None:
        self._inbox, self._schema = inbox, schema

    def write(self, time: datetime, rdd: RDD[Any]) -> None:
        schema = self._schema
        lines = rdd.map(lambda element: _to_json(element, schema)).collect()
        if not lines:
            return
        ms = round(time.timestamp() * 1000)
        name = f"{ms:015d}.txt"
        draft = self._inbox.place / f".{name}"
        with draft.open("w") as out:
            out.writelines(lines)
            sync_written(out)
        # Spark takes files by age: of two batches, the earlier one is older.
        os.utime(draft, (ms / 1000, ms / 1000))
        draft.replace(self._inbox.place / name)
        sync_folder(self._inbox.place)
        for file in self._old():
            file.unlink(missing_ok=True)

    def _old(self) -> list[Path]:
        files = sorted(self._inbox.place.glob("[0-9]*.txt"))
        return [file for file in files if self._inbox.has_landed(file.name)][:-_KEPT]


def _to_json(element: Any, schema: Schema) -> str:
    if isinstance(element, dict):
        row = element
    elif hasattr(element, "asDict"):
        row = element.asDict(recursive=True)
    else:
        row = dict(zip(schema.names, element, strict=True))
    for column in schema.fields:
        if column.type is Atom.TIMESTAMP_NTZ and isinstance(row.get(column.name), datetime):
            # A time without a zone stays as it is.
            row = {**row, column.name: row[column.name].isoformat()}
    return json.dumps(row, default=_to_text) + "\n"


def _to_text(value: object) -> object:
    if isinstance(value, datetime):
        # Without a zone, it is in that of the machine, as Spark takes those of Python.
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else repr(value)

"""Outputs into stores: a batch and the fence that names it are one transaction."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.lake.fence import PendingBatch
from millstream.serve.fence import Driver
from millstream.serve.shape import Shape, columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark import RDD

    from millstream.dstream.home import Planned, StreamHome
    from millstream.errors import Location
    from millstream.serve.sink import WritableSink
    from millstream.serve.store import Refused


@dataclass(frozen=True)
class StoreOutput:
    """A store for the rows of a DStream, to be given to `foreachRDD`."""

    sink: WritableSink
    schema: str
    mode: str

    __name__ = "foreachRDD"


def rows_into(sink: WritableSink, schema: str, *, mode: str = "update") -> StoreOutput:
    """Write every batch into a store exactly once: `counts.foreachRDD(rows_into(…))`.

    Elements are tuples in the order of the columns, dicts or Rows. A batch and its number are one
    transaction of the store, which skips a batch that it has.

    Args:
        sink: `ms.SQLite`, `ms.Postgres`, `ms.Redis`, or a function made by `ms.sink`.
        schema: The columns and their types, as Spark writes them.
        mode: `update` replaces the rows of a key, `append` adds rows, `complete` replaces all.
    """
    return StoreOutput(sink, schema, mode)


class OpenStore:
    """The store of one output, open for one driver; earlier drivers are shut out."""

    def __init__(self, output: StoreOutput, home: StreamHome, number: int, at: Location) -> None:
        from pyspark.sql.types import _parse_datatype_string

        self._output, self._home = output, home
        self._schema: Any = _parse_datatype_string(output.schema)
        self._name = f"output {number}"
        shape = Shape(
            self._name,
            output.mode,
            columns_of(self._schema.json()),
            tuple(output.sink.key),
            at,
            evolve=output.sink.evolve,
            newest_by=output.sink.newest_by,
            schema=self._schema.json(),
        )
        driver = Driver(
            f"dstream/{home.id}/{number}", home.lease.epoch, home.id, folder=home.sink(number)
        )
        self._store = output.sink.open(shape, driver)
        self._store.take()

    def write(self, planned: Planned, rdd: RDD[Any]) -> None:
        """Write the rows of a batch, unless the store has it.

        Raises:
            DSTREAM_REFUSED: The store does not accept a row.
        """
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.getOrCreate()
        table = spark.createDataFrame(rdd, self._schema).toArrow()
        rows = sorted(map(repr, table.to_pylist()))
        digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()
        # An output of a longer slide has no rows, and so no batch, at every number.
        pending = PendingBatch(self._home.id, planned.number, digest, is_sparse=True)
        self._store.write(pending, lambda: [table] if rows else [], self._settle)

    def close(self) -> None:
        """Close the connection."""
        self._store.close()

    def _settle(self, refused: Sequence[Refused]) -> str:
        if refused:
            first = refused[0]
            raise fault(
                "DSTREAM_REFUSED",
                store=self._store.place.name,
                row=first.rows.slice(0, 1).to_pylist()[0],
                why=first.reason,
            )
        return ""

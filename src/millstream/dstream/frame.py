"""A streaming DataFrame as an input: what its query has stored belongs to the next batch."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.lake.durable import sync_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame

    from millstream.dstream.events import Events
    from millstream.dstream.sources import OpenSource


@dataclass(frozen=True, eq=False)
class FrameSource:
    """The rows of a streaming DataFrame: a query stores each of its batches in a folder."""

    frame: DataFrame

    def open(
        self,
        context: SparkContext,
        place: Path,
        parts: Sequence[Any],
        events: Events,  # noqa: ARG002
    ) -> OpenSource:
        """Start the query where it ended; batches that it stored and no batch has come first."""
        last = max((number for part in parts for number in part), default=-1)
        return _OpenFrame(self.frame, context, place, last)


class _OpenFrame:
    def __init__(self, frame: DataFrame, context: SparkContext, place: Path, last: int) -> None:
        self._spark, self._context = frame.sparkSession, context
        self._rows, self._schema, self._last = place / "rows", frame.schema, last
        self._rows.mkdir(parents=True, exist_ok=True)
        writer = frame.writeStream.option("checkpointLocation", str(place / "checkpoint"))
        self._query = writer.foreachBatch(self._store).start()

    def plan(self) -> list[int]:
        if (failure := self._query.exception()) is not None:
            raise failure
        found = (int(f.name) for f in self._rows.iterdir() if f.name.isdigit())
        part = sorted(number for number in found if number > self._last)
        self._last = part[-1] if part else self._last
        return part

    def rdd(self, part: Any) -> RDD[Any]:
        if not part:
            return self._context.emptyRDD()
        folders = [str(self._folder(number)) for number in part]
        return self._spark.read.schema(self._schema).parquet(*folders).rdd

    def rows(self, part: Any) -> int:  # noqa: ARG002
        return 0

    def forget(self, part: Any) -> None:
        for number in part:
            shutil.rmtree(self._folder(number), ignore_errors=True)

    def close(self) -> None:
        self._query.stop()

    def settle(self) -> None:
        """Wait until the query has stored all there is."""
        self._query.processAllAvailable()

    def _store(self, rows: DataFrame, number: int) -> None:
        # A batch that is stored is not stored again: a planned batch may have its rows.
        if number <= self._last or self._folder(number).exists():
            return
        draft = self._rows / f".{number}"
        rows.write.mode("overwrite").parquet(str(draft))
        draft.replace(self._folder(number))
        sync_folder(self._rows)

    def _folder(self, number: int) -> Path:
        return self._rows / f"{number:012d}"

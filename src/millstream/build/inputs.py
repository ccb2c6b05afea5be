"""What functions of datasets are called with: streams in a run, snapshots in a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.build.event_time import watermarked
from millstream.lake.travel import read_snapshot
from millstream.landing.land import Landing
from millstream.model.dataset import Source
from millstream.model.trigger import Trigger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from millstream.build.event_time import Orders
    from millstream.lake.home import Home
    from millstream.model.graph import Graph

# A batch must hold whole batches of what it reads, so that no watermark runs ahead of a row that
# landing has accepted.
_ALL_FILES = str(2**31 - 1)


_DEFAULT = Trigger("default")
_FIRST_COMMIT = "_delta_log/00000000000000000000.json"


class Streams:
    """The inputs of queries while an application runs as a stream."""

    def __init__(self, spark: SparkSession, orders: Orders, trigger: Trigger = _DEFAULT) -> None:
        self._spark, self.orders, self._trigger = spark, orders, trigger
        self._graph, self._home = orders.graph, orders.home

    def triggered(self, trigger: Trigger) -> Streams:
        """Return the same for a query with another trigger."""
        return Streams(self._spark, self.orders, trigger)

    def raw(self, source: Source) -> DataFrame:
        """The records of a source as they arrive."""
        place = self._home.connector(source.name)
        return source.connector.read(self._spark, place)

    def __call__(self, name: str) -> DataFrame:
        """The rows of a source or table, as a stream."""
        dataset = self._graph.datasets[name]
        event_time = self.orders.event_time(name)
        if isinstance(dataset, Source) and dataset.live:
            if self._trigger.is_row_wise:
                return self._by_row(dataset)
            return watermarked(Landing.of(dataset).live(self.raw(dataset)), event_time)
        table = self._home.table(name)
        reader = self._spark.readStream.format("delta").option("maxFilesPerTrigger", _ALL_FILES)
        if (table / _FIRST_COMMIT).exists():
            # Reading the log from its beginning spares the jobs that list a snapshot: 4 s.
            reader = reader.option("startingVersion", 0)
        rows = reader.load(str(table))
        return watermarked(_right_rows(rows, dataset), event_time)

    def _by_row(self, source: Source) -> DataFrame:
        # What continuous mode can neither count nor hold back for a watermark, it refuses.
        in_real_time = self._trigger.kind == "realtime"
        rows = Landing.of(source).live_by_row(self.raw(source), counted=in_real_time)
        return watermarked(rows, self.orders.event_time(source.name)) if in_real_time else rows


class Snapshots:
    """The inputs of a batch: all that is stored, at one version each."""

    def __init__(
        self,
        graph: Graph,
        spark: SparkSession,
        home: Home,
        versions: Mapping[str, int] | None = None,
    ) -> None:
        self._graph, self._spark, self._home = graph, spark, home
        self._versions = versions or {}

    def __call__(self, name: str) -> DataFrame:
        """The rows of a source or table, as they are stored."""
        rows = read_snapshot(self._spark, self._home.table(name), self._versions.get(name))
        return _right_rows(rows, self._graph.datasets[name])


def _right_rows(rows: DataFrame, dataset: object) -> DataFrame:
    if not isinstance(dataset, Source):
        return rows
    return rows.where("_verdict = 'ok'").select(*Landing.of(dataset).schema.names)

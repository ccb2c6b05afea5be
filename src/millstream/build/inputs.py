"""The inputs of datasets' functions: streams in a run, snapshots in a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from millstream.build.event_time import watermarked
from millstream.lake.travel import read_snapshot
from millstream.landing.land import Landing
from millstream.model.connector import TableReading
from millstream.model.dataset import Source
from millstream.model.trigger import Trigger
from millstream.operators.columns import quoted
from millstream.spark.admission import ALL_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.build.event_time import Orders
    from millstream.lake.home import Home
    from millstream.model.connector import Connector
    from millstream.model.graph import Graph

_DEFAULT = Trigger("default")
_FIRST_COMMIT = "_delta_log/00000000000000000000.json"


class Bounds(Protocol):
    """How much the first batch of a query reads."""

    def connector(self, connector: Connector) -> Connector:
        """Bound a connector."""
        ...

    def files(self, table: Path) -> int:
        """Return how many files of a table it reads.

        They must be those of whole versions: a batch must hold whole batches of what it reads, so
        that no watermark runs ahead of a row that landing has accepted.
        """
        ...


class Unbounded:
    """A first batch that reads all there is."""

    def connector(self, connector: Connector) -> Connector:
        """Return the connector as it is."""
        return connector

    def files(self, table: Path) -> int:
        """Return as many files as there can be."""
        del table
        return ALL_FILES


@dataclass(frozen=True, slots=True)
class Streams:
    """The inputs of a query while an application runs as a stream."""

    spark: SparkSession
    orders: Orders
    trigger: Trigger = _DEFAULT
    bounds: Bounds = field(default_factory=Unbounded)

    def raw(self, source: Source) -> DataFrame:
        """The records of a source as they arrive."""
        place, is_row_wise = self.orders.home.connector(source.name), self.trigger.is_row_wise
        if is_row_wise:
            return source.connector.read(self.spark, place)
        if isinstance(source.connector, TableReading):
            files = self.bounds.files(source.connector.folder)
            return source.connector.read_bounded(self.spark, files)
        return self.bounds.connector(source.connector).read(self.spark, place)

    def __call__(self, name: str) -> DataFrame:
        """The rows of a source or table, as a stream."""
        dataset = self.orders.graph.datasets[name]
        event_time = self.orders.event_time(name)
        if isinstance(dataset, Source) and dataset.live:
            if self.trigger.is_row_wise:
                return self._by_row(dataset)
            return watermarked(Landing.of(dataset).live(self.raw(dataset)), event_time)
        table = self.orders.home.table(name)
        files = str(self.bounds.files(table))
        reader = self.spark.readStream.format("delta").option("maxFilesPerTrigger", files)
        if (table / _FIRST_COMMIT).exists():
            # Reading the log from its beginning spares the jobs that list a snapshot: 4 s.
            reader = reader.option("startingVersion", 0)
        rows = reader.load(str(table))
        return watermarked(_right_rows(rows, dataset), event_time)

    def _by_row(self, source: Source) -> DataFrame:
        # Continuous mode refuses to count rows, and to hold them back for a watermark.
        in_real_time = self.trigger.kind == "realtime"
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
    return rows.where("_verdict = 'ok'").select(*map(quoted, Landing.of(dataset).schema.names))

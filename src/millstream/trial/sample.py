"""A few rows of a source, each with its verdict: as they landed, or else read and judged now."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, functions as F
from pyspark.sql.types import StructType

from millstream.errors import fault
from millstream.lake.log import facts_of
from millstream.landing.decode import BLANK, NO_RECORD
from millstream.landing.land import Landing
from millstream.landing.landed import landed_rows
from millstream.landing.verdict import Moment
from millstream.model.connector import Receiving, Sampled
from millstream.model.dataset import VERDICTS
from millstream.operators.columns import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from millstream.lake.home import Home
    from millstream.model.dataset import Source

_MARKS = ("_verdict", "_reason", "_raw", "_origin", "_position")
_LOOK_EVERY_S = 0.05
_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that readers do not see, and why."""

    verdict: str
    reason: str
    place: str
    """Its file and line, or its topic, partition and offset."""
    raw: str | None


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows of a source."""

    source: str
    connector: str
    is_landed: bool
    """Whether the rows were judged when they landed, not now."""
    rows: DataFrame
    """Those that are ok."""
    taken: int
    """How many rows are ok; of records that were read now, how many were read."""
    verdicts: Mapping[str, int]
    """How many rows have each verdict; of landed rows, over all of them."""
    aside: tuple[RejectedRow, ...]
    """The first few that are not ok."""


@dataclass(frozen=True, slots=True)
class SampleBounds:
    """How much is looked at."""

    rows: int
    """Of the dataset."""
    sample: int
    """Records of each source."""
    aside: int = 5
    """Rows of each source that are not ok."""
    fresh: bool = False
    """Look at the source itself even if some of it has landed."""

    def __post_init__(self) -> None:
        for option, number in (("rows", self.rows), ("sample", self.sample)):
            if number < 1:
                raise fault(
                    "ARGUMENT_REFUSED", option=option, value=str(number), expected="1 or more"
                )


def take_sample(source: Source, spark: SparkSession, home: Home, bounds: SampleBounds) -> Sample:
    """Read some rows of a source; nothing is stored or acknowledged.

    Raises:
        NOT_SAMPLED: Its records can be read only once, and none has landed.
        MillstreamError: It cannot be reached.
    """
    landed = None if bounds.fresh else _landed(source, spark, home, bounds)
    return landed or _judged(source, spark, bounds)


def first_rows(rows: DataFrame, most: int) -> DataFrame:
    """Read the first rows, from as few partitions as needed, into the driver."""
    spark, frame = rows.sparkSession, rows._jdf
    local = spark._jsparkSession.createDataFrame(frame.takeAsList(most), frame.schema())
    return DataFrame(local, spark)


def _landed(source: Source, spark: SparkSession, home: Home, bounds: SampleBounds) -> Sample | None:
    """Return a sample of what has landed; None if nothing has, or with other columns."""
    path, landing = home.table(source.name), Landing.of(source)
    if source.live or source.name not in home.tables:
        return None
    totals = facts_of(path).totals
    stored = DeltaTable(str(path)).schema().to_json()
    if not totals.get("input") or not _types(landing.table_schema) <= _types(stored):
        return None
    verdicts = {verdict: totals[verdict] for verdict in VERDICTS if totals.get(verdict)}
    rows = landed_rows(path, landing.schema.names, most=bounds.sample, right=True)
    aside = landed_rows(path, _MARKS, most=bounds.aside, right=False)
    return Sample(
        source.name,
        type(source.connector).__name__,
        is_landed=True,
        rows=spark.createDataFrame(rows, landing.schema.with_nulls().to_ddl()),
        taken=rows.num_rows,
        verdicts=verdicts,
        aside=tuple(map(_rejected, aside.to_pylist())),
    )


def _types(schema: str) -> set[tuple[str, str]]:
    fields = StructType.fromJson(json.loads(schema))
    return {(field.name, field.dataType.simpleString()) for field in fields}


def _judged(source: Source, spark: SparkSession, bounds: SampleBounds) -> Sample:
    landing = Landing.of(source)
    # Lines are counted, and a header is recognized, within a partition.
    raw = _raw(source, spark, bounds.sample).coalesce(1)
    moment = Moment(0, time.time_ns() // 1000)
    judged = landing.judge(raw, moment).where(~F.col("_verdict").isin(NO_RECORD, BLANK))
    sampled = first_rows(judged, bounds.sample)
    marks = sampled.select(*_MARKS).collect()
    counted = Counter(row["_verdict"] for row in marks)
    return Sample(
        source.name,
        type(source.connector).__name__,
        is_landed=False,
        rows=sampled.where("_verdict = 'ok'").select(*map(quoted, landing.schema.names)),
        taken=len(marks),
        verdicts={verdict: counted[verdict] for verdict in VERDICTS if counted[verdict]},
        aside=tuple(_rejected(row) for row in marks if row["_verdict"] != "ok")[: bounds.aside],
    )


def _raw(source: Source, spark: SparkSession, records: int) -> DataFrame:
    connector = source.connector
    if isinstance(connector, Receiving):
        raise fault(
            "NOT_SAMPLED", at=source.at, source=source.name, connector=type(connector).__name__
        )
    connector.reach(spark, source.name, source.connector_at)
    if isinstance(connector, Sampled):
        return first_rows(connector.sample(spark, records), records)
    with tempfile.TemporaryDirectory(prefix="millstream-sample-") as nowhere:
        place = Path(nowhere)
        return _first(connector.read(spark, place / source.name), records, place / "checkpoint")


def _first(stream: DataFrame, records: int, checkpoint: Path) -> DataFrame:
    """Return the first records of a stream."""
    batches = [stream.sparkSession.createDataFrame([], stream.schema)]
    lacking = records

    def take(batch: DataFrame, _: int) -> None:
        nonlocal lacking
        if lacking:
            batches.append(first_rows(batch, lacking))
            lacking -= batches[-1].count()

    writer = stream.writeStream.foreachBatch(take).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    until = time.monotonic() + _WITHIN_S
    while lacking and query.isActive and time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)
    if failure := query.exception():
        raise failure
    query.stop()
    return batches[0] if len(batches) == 1 else _together(batches)


def _together(frames: list[DataFrame]) -> DataFrame:
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    return whole


def _rejected(row: Any) -> RejectedRow:
    position = "" if row["_position"] is None else f":{row['_position']}"
    raw = bytes(row["_raw"]).decode(errors="replace") if row["_raw"] is not None else None
    return RejectedRow(row["_verdict"], row["_reason"], f"{row['_origin'] or ''}{position}", raw)

"""A stream of files, one a batch, run to its end: what each batch took, answered and kept."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyspark.sql import functions as F

from millstream.spark.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

ANSWERS = "answers"
_MOST_BATCHES = 10_000


@dataclass(frozen=True)
class Batch:
    """What Spark reports on a batch."""

    rows: int
    seconds: float
    answered: tuple[int, int]
    """How many rows, and the sum of their hashes: equal if the rows are, in whatever order."""
    state: tuple[dict[str, Any], ...]
    """What each operator says of its state."""


def session(folder: Path, **conf: str) -> SparkSession:
    """Start the Spark of an app, on two cores, that remembers every batch it ran."""
    remembers = {"spark.sql.streaming.numRecentProgressUpdates": str(_MOST_BATCHES)}
    return open_session("bench", master="local[2]", log_dir=folder, conf={**remembers, **conf})


def write_batches(folder: Path, tables: Iterable[pa.Table]) -> None:
    """Write a file for each batch, in the order in which Spark is to read them."""
    folder.mkdir(parents=True, exist_ok=True)
    first = len([*folder.iterdir()])
    for number, table in enumerate(tables, first):
        begun = folder / f".{number:06d}"  # A stream that runs does not see it.
        pq.write_table(table, begun)
        os.utime(begun, (1_700_000_000 + number, 1_700_000_000 + number))
        begun.rename(folder / f"{number:06d}.parquet")


def stream_of(spark: SparkSession, files: Path) -> DataFrame:
    """Read files as a stream, each in a batch of its own."""
    schema = spark.read.parquet(str(files)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))


def run(answers: DataFrame, checkpoint: Path, *, mode: str = "append") -> list[Batch]:
    """Run a stream to its end; its answers are hashed and go nowhere."""
    query = _writer(answers, checkpoint, mode).trigger(availableNow=True).start()
    query.awaitTermination()
    return _batches(query)


@dataclass(frozen=True)
class Lane:
    """A stream that takes its turn among others."""

    files: Path
    answers: DataFrame
    checkpoint: Path
    mode: str


def run_in_turn(lanes: Sequence[Lane], tables: Iterable[pa.Table]) -> list[list[Batch]]:
    """Give every table to one stream after the other: what slows the machine slows them all."""
    queries = [_writer(lane.answers, lane.checkpoint, lane.mode).start() for lane in lanes]
    for table in tables:
        for lane, query in zip(lanes, queries, strict=True):
            write_batches(lane.files, [table])
            query.processAllAvailable()
    for query in queries:
        query.stop()
    return [[b for b in _batches(query) if b.rows] for query in queries]


def _writer(answers: DataFrame, checkpoint: Path, mode: str) -> DataStreamWriter:
    # Every column is hashed, so none is left out; the hash comes with the progress of the batch.
    hashed = F.sum(F.xxhash64(*map(F.col, answers.columns)).cast("decimal(38, 0)"))
    reported = answers.observe(ANSWERS, F.count("*").alias("rows"), hashed.alias("hash"))
    writer = reported.writeStream.format("noop").outputMode(mode)
    return writer.option("checkpointLocation", str(checkpoint))


def _batches(query: StreamingQuery) -> list[Batch]:
    return [_batch(json.loads(progress.json)) for progress in query.recentProgress]


def _batch(progress: dict[str, Any]) -> Batch:
    reported = progress.get("observedMetrics", {}).get(ANSWERS) or {}
    return Batch(
        progress["numInputRows"],
        progress["durationMs"]["triggerExecution"] / 1000,
        (int(reported.get("rows") or 0), int(reported.get("hash") or 0)),
        tuple(progress["stateOperators"]),
    )


def rate(batches: Sequence[Batch]) -> float:
    """Rows a second, in the batch that is in the middle."""
    return statistics.median(b.rows / b.seconds for b in batches)


def rate_in_all(batches: Sequence[Batch]) -> float:
    """Rows a second, in all batches together."""
    return sum(b.rows for b in batches) / sum(b.seconds for b in batches)


def in_all(batches: Sequence[Batch]) -> tuple[int, int]:
    """What all batches together answered."""
    return sum(b.answered[0] for b in batches), sum(b.answered[1] for b in batches)


def write_report(name: str, report: dict[str, Any]) -> None:
    """Print what was measured, and keep it; by the load one sees whether others ran as well."""
    load = [round(number, 1) for number in os.getloadavg()]
    dated = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "load": load, **report}
    text = json.dumps(dated, indent=2)
    print(text, flush=True)
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / f"{name}.json").write_text(text + "\n")

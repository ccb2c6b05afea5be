"""Ten million different values in windows: counted exactly, and by a sketch.

A stream cannot count(DISTINCT …): by hand, repetitions are dropped and the rest is counted. All
windows stay open until the last batch, as late rows are waited for.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

import millstream as ms
from bench.stream import run, session, stream_of, write_batches, write_report
from millstream.spark.session import stop_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from bench.stream import Batch

VALUES, WINDOWS, BATCHES, ERROR = 10_000_000, 10, 20, 0.02
HOUR_US = 3_600_000_000
START_US = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp()) * 1_000_000
VISITORS = ms.sketch.Distinct(error=ERROR)


def tables() -> Iterator[pa.Table]:
    """Yield the values in order of time, then a row of days later that closes the windows."""
    each = VALUES // BATCHES
    for batch in range(BATCHES):
        number = np.arange(batch * each, (batch + 1) * each, dtype=np.int64)
        yield table(number, number * (WINDOWS * HOUR_US // VALUES))
    yield table(np.array([0], dtype=np.int64), np.array([200 * HOUR_US]))


def table(number: np.ndarray, at_us: np.ndarray) -> pa.Table:
    times = pa.array(START_US + at_us, pa.timestamp("us", tz="UTC"))
    return pa.table({"at": times, "visitor": number * 2_654_435_761 % 2**40})


def windowed(rows: DataFrame) -> DataFrame:
    timed = rows.withWatermark("at", "24 hours") if rows.isStreaming else rows
    return timed.withColumn("w", F.window("at", "1 hour"))


def exact(rows: DataFrame) -> DataFrame:
    return windowed(rows).dropDuplicates(["w", "visitor"]).groupBy("w").count()


def sketched(rows: DataFrame) -> DataFrame:
    return windowed(rows).groupBy("w").agg(VISITORS.of("visitor").alias("visitors"))


def kept(checkpoint: Path) -> int:
    """How many bytes of state a checkpoint holds."""
    return sum(file.stat().st_size for file in (checkpoint / "state").rglob("*") if file.is_file())


def seconds(batches: list[Batch]) -> float:
    """How long the batches of values took, without the first, which warms up."""
    return sum(batch.seconds for batch in batches[1:BATCHES])


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-sketch-") as folder:
        place = Path(folder)
        write_batches(place / "files", tables())
        spark = session(place / "logs")
        took, bytes_kept = {}, {}
        for name, answer in {"sketch": sketched, "exact": exact}.items():
            batches = run(answer(stream_of(spark, place / "files")), place / name)
            took[name], bytes_kept[name] = seconds(batches), kept(place / name)
        errors = [
            abs(row.visitors.estimate / (VALUES / WINDOWS) - 1)
            for row in sketched(spark.read.parquet(str(place / "files"))).collect()
            if row.visitors.estimate > 1
        ]
        stop_session(spark)
    rows = VALUES * (BATCHES - 1) // BATCHES
    write_report(
        "sketch",
        {
            "values": VALUES,
            "windows": WINDOWS,
            "error wanted": ERROR,
            "greatest error": round(max(errors), 4),
            "rows a second": {name: round(rows / took[name]) for name in took},
            "MB of state": {name: round(bytes_kept[name] / 1e6, 1) for name in bytes_kept},
            "throughput: sketch to exact": round(took["exact"] / took["sketch"], 2),
            "state: sketch to exact": round(bytes_kept["sketch"] / bytes_kept["exact"], 4),
        },
    )


if __name__ == "__main__":
    main()

"""The run whose classes go into the class archive: a little of all that apps do."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.spark.archive import recording_flags
from millstream.spark.defaults import settings
from millstream.spark.jars import resolve
from millstream.spark.java import find_java
from millstream.spark.session import start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_LINES = [f'{{"at": "2026-01-01T00:{n:02}:00Z", "n": {n}}}' for n in range(60)]


def main() -> None:
    """Record the archive at the path in the first argument."""
    conf = settings("local[2]", {}, jars=resolve(), java_flags=recording_flags(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory(prefix="millstream-training-") as folder:
        spark = start("training", java=find_java(), conf=conf, log_dir=Path(folder))
        jvm = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        exercise(spark, Path(folder))
        spark.stop()
        # The archive is written as the JVM ends, and it ends when its input does.
        jvm.stdin.close()
        jvm.wait()


def exercise(spark: SparkSession, folder: Path) -> None:
    """Land lines of JSON in parquet and Delta, and count them by window from there."""
    from pyspark.sql.functions import window

    text, landed, counted = (str(folder / name) for name in ("text", "landed", "counted"))

    def land(batch: DataFrame, _batch_id: int) -> None:
        kept = batch.mapInArrow(_unchanged, batch.schema).persist()
        kept.write.mode("append").parquet(str(folder / "files"))
        kept.write.format("delta").mode("append").save(landed)
        kept.unpersist()

    spark.createDataFrame([(line,) for line in _LINES], "value string").write.text(text)
    events = spark.readStream.text(text).selectExpr(
        "from_json(value, 'at timestamp, n int') as event", "sha2(value, 256) as id"
    )
    _drain(events.select("event.*", "id"), "land", folder, land)
    counts = (
        spark.readStream.format("delta")
        .load(landed)
        .withWatermark("at", "5 minutes")
        .groupBy(window("at", "10 minutes"))
        .count()
    )
    _drain(counts, "count", folder, lambda batch, _: batch.write.mode("append").parquet(counted))
    spark.read.parquet(counted).collect()


def _drain(
    stream: DataFrame, name: str, folder: Path, sink: Callable[[DataFrame, int], None]
) -> None:
    query = (
        stream.writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(folder / "checkpoints" / name))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    main()

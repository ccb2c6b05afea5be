"""Access-log lines landed by a pattern, against plain Spark's regexp_extract, in one process."""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

import millstream as ms
from bench.frame_plain import write
from millstream.model.line_pattern import NAMED
from millstream.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HERE = Path(__file__).parent
LINES, FILES, ROUNDS = 150_000, 4, 5
SCHEMA = "host STRING, time TIMESTAMP, method STRING, path STRING, status INT, bytes BIGINT"
START = datetime(2026, 11, 1, tzinfo=UTC)


def put(folder: Path) -> None:
    """Write access logs; one line in a thousand is broken."""
    chance = random.Random(7)
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"
    for number in range(FILES):
        with (folder / f"access-{number}.log").open("w") as out:
            for n in range(LINES):
                at = START + timedelta(seconds=(number * LINES + n) // 100)
                request = f"GET /items/{chance.randrange(10_000)}?page={n % 9} HTTP/1.1"
                line = (
                    f"10.0.{n % 250}.{n % 199} - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "
                    f'"{request}" 200 {n} "https://shop.example/" "{agent}"'
                )
                out.write(f"{'broken' if n % 1000 == 999 else line}\n")


def ours(folder: Path, home: Path) -> None:
    """Land them."""
    app = ms.App("bench")

    @app.source(event_time="time", watermark="10 minutes")
    def access() -> ms.Files:
        return ms.Files(str(folder), format="text", pattern="apache_combined", schema=SCHEMA)

    app.run(home=str(home), once=True, fail_fast=True)


def plain(spark: SparkSession, folder: Path, home: Path) -> None:
    """Extract the same columns by hand, keep the broken lines and where each came from."""
    text, pattern = F.col("value"), NAMED["apache_combined"].text.replace("(?P<", "(?<")
    groups = {"host": 1, "time": 4, "method": 5, "path": 6, "status": 9, "bytes": 10}
    rows = spark.readStream.format("text").load(str(folder))
    found: DataFrame = rows.select(
        *(F.regexp_extract(text, pattern, group).alias(name) for name, group in groups.items()),
        F.when(~F.rlike(text, F.lit(pattern)), text).alias("_raw"),
        F.col("_metadata.file_path").alias("_origin"),
        F.current_timestamp().alias("_arrived_at"),
    )
    typed = found.withColumns(
        {
            "time": F.try_to_timestamp("time", F.lit("dd/MMM/yyyy:HH:mm:ss Z")),
            "status": F.expr("try_cast(status AS INT)"),
            "bytes": F.expr("try_cast(bytes AS BIGINT)"),
        }
    )
    write(typed, str(home), "access", once=True).awaitTermination()


def main() -> None:
    rates: dict[str, list[float]] = {"ours": [], "plain PySpark": []}
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
        place = Path(temporary)
        (folder := place / "in").mkdir()
        put(folder)
        spark = open_session("bench", log_dir=place)
        for attempt in range(ROUNDS):
            for side, found in rates.items():
                home = place / f"{side.split()[0]}-{attempt}"
                began = time.monotonic()
                ours(folder, home) if side == "ours" else plain(spark, folder, home)
                found.append(LINES * FILES / (time.monotonic() - began))
        # The first rounds warm both up.
        medians = {side: statistics.median(found[2:]) for side, found in rates.items()}
    report = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "landed access log, lines/s": {
            **{side: round(rate) for side, rate in medians.items()},
            "ratio": round(medians["ours"] / medians["plain PySpark"], 2),
        },
        "rounds": {side: [round(rate) for rate in found] for side, found in rates.items()},
    }
    print(json.dumps(report, indent=2))
    (HERE / "results" / "text.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""Upserts into Postgres, fenced, against Spark's own JDBC writer, which only adds rows."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

import millstream as ms
from bench.stores import KEYS
from bench.topic import FILES, rows_of, serve_all, write_rows
from millstream.spark.jars import resolve
from millstream.spark.session import open_session, stop_session
from millstream.testing.postgres import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HERE = Path(__file__).parent
ROUNDS = 3
ADD = "CREATE TABLE {} (page TEXT, n BIGINT, mean DOUBLE PRECISION, last TIMESTAMPTZ)"


def ours(frame: DataFrame, server: PostgresServer, table: str, folder: Path) -> None:
    serve_all(frame, ms.Postgres(server.dsn, table=table, key="page"), folder)


def by_spark(frame: DataFrame, server: PostgresServer, table: str, folder: Path) -> None:
    with psycopg.connect(server.dsn) as db:
        db.execute(ADD.format(table))
    options = {
        "url": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres",
        "dbtable": table,
        "user": "miller",
        "password": server.password,
        "driver": "org.postgresql.Driver",
    }

    def write(rows: DataFrame, _: int) -> None:
        rows.write.format("jdbc").options(**options).mode("append").save()

    writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(folder))
    writer.trigger(availableNow=True).start().awaitTermination()


def main() -> None:
    taken: dict[str, list[float]] = {"ours, upserted once": [], "Spark's, appended": []}
    with PostgresServer() as server, tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_rows(folder / "rows")
        [driver] = resolve(HERE / "jdbc.lock")
        conf = {"spark.jars": str(driver)}
        spark = open_session("bench", master="local[2]", conf=conf, log_dir=folder)
        for number in range(ROUNDS + 1):
            for name, send in zip(taken, (ours, by_spark), strict=True):
                table = f"{send.__name__}_{number}"
                frame, began = rows_of(spark, folder / "rows", 1), time.monotonic()
                send(frame, server, table, folder / table)
                if number:  # the first round warms up
                    taken[name].append(time.monotonic() - began)
                print(name, round(time.monotonic() - began, 2), flush=True)
        stop_session(spark)
    rates = {name: FILES * KEYS / statistics.median(times) for name, times in taken.items()}
    report: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    report |= {"rows": FILES * KEYS, "keys": KEYS}
    report |= {f"{name}, rows/s": round(rate) for name, rate in rates.items()}
    first, second = rates.values()
    report["ratio"] = round(first / second, 2)
    print(report)
    (HERE / "results" / "jdbc.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()

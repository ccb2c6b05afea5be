"""The program that is killed: words of files are counted into SQLite, on either engine.

    python -m tests.dstream.counting ENGINE FOLDER

It writes three tables: what each batch had, the window at each batch, and the totals.
"""

from __future__ import annotations

import sqlite3
import sys
import warnings
from importlib import import_module
from operator import add, sub
from pathlib import Path
from typing import TYPE_CHECKING, Any

import millstream as ms
from millstream.spark.session import open_session
from millstream.testing.quick_settings import QUICK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

ENGINES = {"ours": "millstream.dstream", "pyspark.streaming": "pyspark.streaming"}
INTERVAL_S = 1
WINDOW_S = 6
SCHEMA = {
    "batches": "ms BIGINT, word STRING, n BIGINT",
    "windows": "ms BIGINT, word STRING, n BIGINT",
    "totals": "word STRING, n BIGINT",
}


def count(new: list[int], total: int | None) -> int:
    return sum(new) + (total or 0)


def with_time(time: datetime, rdd: Any) -> Any:
    ms_of_batch = round(time.timestamp() * 1000)
    return rdd.map(lambda kv: (ms_of_batch, *kv))


def make(api: Any, sc: Any, folder: Path) -> Any:
    ssc = api.StreamingContext(sc, INTERVAL_S)
    pairs = ssc.textFileStream(str(folder / "in")).map(lambda word: (word, 1))
    streams = {
        "batches": pairs.reduceByKey(add).transform(with_time),
        "windows": pairs.reduceByKeyAndWindow(add, sub, WINDOW_S).transform(with_time),
        "totals": pairs.updateStateByKey(count),
    }
    for table, stream in streams.items():
        stream.foreachRDD(into(api, folder / "counts.db", table))
    return ssc


def into(api: Any, database: Path, table: str) -> Any:
    """Write a table as either engine does best."""
    has_key = table == "totals"
    if hasattr(api, "rows_into"):
        store = ms.SQLite(str(database), table=table, key="word" if has_key else ())
        return api.rows_into(store, SCHEMA[table], mode="update" if has_key else "append")
    return by_hand(str(database), table, len(SCHEMA[table].split(",")))


def by_hand(database: str, table: str, columns: int) -> Callable[[Any], None]:
    """Write the rows of a batch in one transaction, as programs for DStreams do."""

    def write(rdd: Any) -> None:
        rows: Iterable[Any] = rdd.collect()
        places = ", ".join("?" * columns)
        with sqlite3.connect(database) as connection:
            connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", rows)
        connection.close()

    return write


def prepare(folder: Path) -> None:
    """Make the tables that the program of pyspark.streaming writes."""
    with sqlite3.connect(folder / "counts.db") as connection:
        for table, columns in SCHEMA.items():
            fitting = columns.replace("STRING", "TEXT").replace("BIGINT", "INTEGER")
            key = ", PRIMARY KEY (word)" if table == "totals" else ""
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({fitting}{key})")
    connection.close()


def main() -> None:
    warnings.simplefilter("ignore")
    engine, folder = sys.argv[1], Path(sys.argv[2])
    api = import_module(ENGINES[engine])
    if engine != "ours":
        prepare(folder)
    spark = open_session("counting", master="local[2]", conf=QUICK, log_dir=folder / "logs")
    home = str(folder / "home")
    ssc = api.StreamingContext.getOrCreate(home, lambda: make(api, spark.sparkContext, folder))
    ssc.start()
    (folder / "started").touch()
    ssc.awaitTermination()


if __name__ == "__main__":
    main()

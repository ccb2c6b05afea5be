"""Statistics of a web server's log, for windows of a minute, in a SQL store, exactly once.

python examples/dstreams/weblog.py FOLDER weblog.db checkpoint

Move files of log lines into the folder: new ones are read every ten seconds. A batch and its number
are one transaction of the store, so a batch that is computed again after a crash is stored once.
"""

import re
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pyspark import SparkContext

import millstream as ms
from millstream.dstream import DStream, StreamingContext, rows_into

LINE = re.compile(
    r'\S+ \S+ \S+ \[[^\]]+\] "(?:\S+) (?P<url>\S+)[^"]*" (?P<status>\d{3}) (?P<size>\d+|-)'
)
ROW = "at STRING NOT NULL, status STRING NOT NULL, requests BIGINT, bytes BIGINT"


def requests(line: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The kind of status and the size of a request; nothing of a line that is not one."""
    if found := LINE.match(line):
        size = 0 if found["size"] == "-" else int(found["size"])
        yield f"{found['status'][0]}xx", (1, size)


def plus(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Add requests and bytes."""
    return one[0] + other[0], one[1] + other[1]


def minus(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Take requests and bytes away."""
    return one[0] - other[0], one[1] - other[1]


def statistics(lines: DStream[str], window: int = 60, slide: int = 10) -> DStream[Any]:
    """Requests and bytes of each kind of status; `at` is the end of the window."""
    sums = lines.flatMap(requests).reduceByKeyAndWindow(
        plus, minus, window, slide, filterFunc=lambda kind_sums: kind_sums[1][0] > 0
    )

    def dated(time: datetime, rdd: Any) -> Any:
        at = time.isoformat()
        return rdd.map(lambda kind_sums: (at, kind_sums[0], *kind_sums[1]))

    return sums.transform(dated)


def into(store: str) -> Any:
    """An output that writes into a table of a SQLite file."""
    return rows_into(ms.SQLite(store, table="statistics", key=["at", "status"]), ROW)


def main(folder: str, store: str, checkpoint: str) -> None:
    """Write until Ctrl-C."""
    ssc = StreamingContext(SparkContext("local[2]", "weblog"), 10)
    ssc.checkpoint(checkpoint)
    statistics(ssc.textFileStream(folder)).foreachRDD(into(store))
    ssc.start()
    ssc.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])

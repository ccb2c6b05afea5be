from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

import millstream as ms
from millstream.dstream import DStream, DStreams, Steps, StreamingContext
from millstream.lake.home import Home
from millstream.lake.log import is_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.testing import Script

WITHIN_S = 60
WORDS = [["a", "b", "a"], ["b"], [], ["c"], ["a"]]


def totals(ssc: StreamingContext) -> DStream[tuple[str, int]]:
    pairs = ssc.queueStream(WORDS).map(lambda word: (word, 1))
    return pairs.updateStateByKey(lambda new, total: sum(new) + (total or 0))


app = ms.App("words")


@app.source
def counts() -> DStreams:
    return DStreams(totals, schema="word STRING, n BIGINT", interval=0.2)


@app.table(mode="update", key="word")
def greatest(counts: DataFrame) -> DataFrame:
    return counts.groupBy("word").max("n").toDF("word", "n")


def test_a_program_is_a_source_whose_batches_are_landed_once(
    spark: SparkSession, home: Path
) -> None:
    for wanted in (("b", 2), ("a", 3)):
        app.start(home=home)
        until = time.monotonic() + WITHIN_S
        while wanted not in stored(home, "greatest"):
            assert time.monotonic() < until
            time.sleep(0.1)
        app.stop()

    landed = stored(home, "counts")
    assert landed.count(("a", 2)) == 4
    assert landed.count(("b", 1)) == 1


def stored(home: Path, name: str) -> list[tuple[str, int]]:
    table = Home.at(home).table(name)
    if not is_table(table):
        return []
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=["word", "n"]).to_pylist()
    return sorted((row["word"], row["n"]) for row in rows)


def test_the_kit_sends_the_rows_of_a_program(stream: Callable[..., Script]) -> None:
    with stream(app) as s:
        s.send("counts", word="a", n=2)
        s.batch()

        assert s.table("greatest").rows("word", "n") == [("a", 2)]


def test_a_dataframe_becomes_a_stream_of_rows(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[Any] = []
    folder = tmp_path / "in"
    folder.mkdir()

    def start() -> Steps:
        ssc = StreamingContext(spark.sparkContext, 1)
        ssc.checkpoint(str(tmp_path / "home"))
        frame = spark.readStream.schema("n INT").json(str(folder))
        rows = ssc.dataFrameStream(frame).map(lambda row: row.n)
        rows.window(2).foreachRDD(lambda rdd: seen.append(sorted(rdd.collect())))
        return Steps(ssc)

    (folder / "1.json").write_text('{"n": 1}\n{"n": 2}\n')
    with start() as steps:
        steps.run()
        (folder / "2.json").write_text('{"n": 3}\n')
        steps.run()
    (folder / "3.json").write_text('{"n": 4}\n')
    with start() as steps:
        steps.run(2)

    assert seen == [[1, 2], [1, 2, 3], [3, 4], [4]]

from __future__ import annotations

import time
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.dstream import (
    KafkaUtils,
    OffsetRange,
    Steps,
    StreamingContext,
    TopicAndPartition,
    kafka,
)

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

    from millstream.testing.kafka import Broker, Topics


def test_a_batch_is_a_range_of_offsets_and_the_next_run_continues(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topics.create("dstream-words", partitions=2)
    topics.send("dstream-words", "before")
    ranges: list[list[OffsetRange]] = []
    values: list[list[Any]] = []

    def note(rdd: Any) -> None:
        ranges.append(rdd.offsetRanges())
        values.append(sorted(value for _, value in rdd.collect()))

    def start(**where: Any) -> Steps:
        ssc = StreamingContext(spark.sparkContext, 1)
        ssc.checkpoint(str(tmp_path))
        params = {"metadata.broker.list": broker.servers, "auto.offset.reset": "smallest"}
        stream = KafkaUtils.createDirectStream(ssc, ["dstream-words"], params, **where)
        stream.foreachRDD(note)
        return Steps(ssc)

    with start() as steps:
        steps.run()
        topics.send("dstream-words", "a", "b")
        topics.send_and_abort("dstream-words", "never")
        topics.send("dstream-words", "c", partition=1)
        steps.run(2)
    topics.send("dstream-words", "d", partition=1)
    with start(fromOffsets={TopicAndPartition("dstream-words", 0): 0}) as steps:
        steps.run()

    assert values == [["before"], ["a", "b", "c"], [], ["d"]]
    assert ranges[0][0] == OffsetRange("dstream-words", 0, 0, 1)
    for before, after in pairwise(ranges[:3]):
        assert [each.fromOffset for each in after] == [each.untilOffset for each in before]
    assert ranges[3][1] == OffsetRange("dstream-words", 1, 1, 2)


class Slow:
    """A broker that sends the second record late: after the first, no more for a while."""

    _PARTITION_EOF = -191
    KafkaError = KafkaException = TopicPartition = None

    def __init__(self) -> None:
        self.TopicPartition = lambda *place: SimpleNamespace(offset=0)
        self.KafkaError, self.Consumer = self, lambda settings: self
        self.answers = [[Record(0)], [], [Record(1)], [Record(2)]]

    def assign(self, places: Any) -> None: ...

    def consume(self, count: int, seconds: float) -> list[Record]:
        return self.answers.pop(0)

    def position(self, places: Any) -> Any:
        return places

    def close(self) -> None: ...


class Record(NamedTuple):
    number: int

    def offset(self) -> int:
        return self.number

    def error(self) -> None: ...


def test_a_slow_reader_of_records_is_no_silent_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "_ANSWERS_WITHIN_S", 0.2)
    monkeypatch.setattr(kafka, "_module", lambda name: Slow())
    offsets = []

    for record in kafka._records({}, OffsetRange("t", 0, 0, 2)):
        offsets.append(record.offset())
        time.sleep(0.3)

    assert offsets == [0, 1]

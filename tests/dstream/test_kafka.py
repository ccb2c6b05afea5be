from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.dstream import KafkaUtils, OffsetRange, Steps, StreamingContext, TopicAndPartition

if TYPE_CHECKING:
    from pathlib import Path

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
    assert [each.count() for each in ranges[2]] == [0, 0]
    assert ranges[3][1] == OffsetRange("dstream-words", 1, 1, 2)

"""Functional streams: programs written for DStreams, run by Structured Streaming.

`from millstream.dstream import StreamingContext` instead of `from pyspark.streaming …`, and the
program runs.
"""

from millstream.dstream.context import StreamingContext
from millstream.dstream.events import StreamingListener
from millstream.dstream.kafka import KafkaUtils, OffsetRange, TopicAndPartition
from millstream.dstream.map_state import State, StateSpec
from millstream.dstream.source import DStreams
from millstream.dstream.steps import Steps
from millstream.dstream.store import rows_into
from millstream.dstream.stream import DStream, MapWithStateDStream, TransformedDStream

__all__ = [
    "DStream",
    "DStreams",
    "KafkaUtils",
    "MapWithStateDStream",
    "OffsetRange",
    "State",
    "StateSpec",
    "Steps",
    "StreamingContext",
    "StreamingListener",
    "TopicAndPartition",
    "TransformedDStream",
    "rows_into",
]

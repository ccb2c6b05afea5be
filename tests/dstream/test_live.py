from __future__ import annotations

import socket
import threading
import time
from operator import add
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from millstream.dstream import StreamingContext, StreamingListener
from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

HOST = "127.0.0.1"
WITHIN_S = 30


@pytest.fixture
def ssc(spark: SparkSession) -> Iterator[StreamingContext]:
    made = StreamingContext(spark.sparkContext, 0.2)  # type: ignore[arg-type]
    yield made
    made.stop(stopSparkContext=False)


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_lines_of_a_socket_are_counted_and_a_graceful_stop_leaves_none(
    ssc: StreamingContext, tmp_path: Path
) -> None:
    totals: dict[str, int] = {}
    errors: list[Any] = []

    class Receivers(StreamingListener):
        def onReceiverError(self, receiverError: Any) -> None:  # noqa: N802, N803
            errors.append(receiverError.receiverInfo().lastErrorMessage())

    with socket.create_server((HOST, 0)) as server:
        lines = ssc.socketTextStream(HOST, server.getsockname()[1])
        words = lines.flatMap(lambda line: line.split(" ")).map(lambda word: (word, 1))
        state = words.updateStateByKey(lambda new, total: sum(new) + (total or 0))
        state.foreachRDD(lambda rdd: totals.update(rdd.collect()))
        ssc.checkpoint(str(tmp_path / "home"))
        ssc.addStreamingListener(Receivers())
        ssc.start()
        client, _ = server.accept()
        client.sendall(b"to be or not\n")
        wait_for(lambda: totals.get("be") == 1)
        client.sendall(b"to be\nlast")
        client.close()
        wait_for(lambda: errors)
        ssc.stop(stopSparkContext=False, stopGraceFully=True)

    assert totals == {"to": 2, "be": 2, "or": 1, "not": 1, "last": 1}
    assert "SOCKET_CLOSED" in errors[0]


def test_batches_lie_on_the_grid_of_the_interval(ssc: StreamingContext) -> None:
    times: list[float] = []
    ssc.queueStream([]).foreachRDD(lambda time, rdd: times.append(time.timestamp()))

    ssc.start()
    wait_for(lambda: len(times) >= 5)

    numbers = [round(each / 0.2, 3) for each in times]
    assert all(number == int(number) for number in numbers)
    assert numbers == [*range(int(numbers[0]), int(numbers[0]) + len(numbers))]
    assert StreamingContext.getActive() is ssc
    assert not ssc.awaitTerminationOrTimeout(0)


def test_a_function_that_raises_ends_the_program(ssc: StreamingContext) -> None:
    ssc.queueStream([["1", "x"]]).map(int).pprint()

    ssc.start()
    with pytest.raises(Py4JJavaError, match="invalid literal for int") as raised:
        ssc.awaitTermination()

    assert isinstance(raised.value, MillstreamError)
    assert raised.value.code == "DSTREAM_RAISED"
    assert "test_live.py" in str(raised.value.at)


def test_a_program_can_stop_itself(ssc: StreamingContext) -> None:
    def stop(rdd: Any) -> None:
        if rdd.collect() == [2]:
            ssc.stop(stopSparkContext=False)

    ssc.queueStream([[1], [2], [3]]).foreachRDD(stop)

    ssc.start()

    assert ssc.awaitTerminationOrTimeout(WITHIN_S)
    assert StreamingContext.getActive() is None


def test_a_killed_and_a_stopped_program_continue_in_their_home(
    spark: SparkSession, tmp_path: Path
) -> None:
    seen: dict[Any, Any] = {}

    def make() -> StreamingContext:
        ssc = StreamingContext(spark.sparkContext, 0.2)  # type: ignore[arg-type]
        queue = ssc.queueStream([[n] for n in range(1, 9)])
        total = queue.map(lambda n: (0, n)).updateStateByKey(lambda new, held: sum(new, held or 0))
        total.foreachRDD(lambda time, rdd: seen.update({time: rdd.collect()[0][1]}))
        return ssc

    for least in (2, 5, 8):
        ssc = StreamingContext.getOrCreate(str(tmp_path), make)
        ssc.start()
        wait_for(lambda least=least: len(seen) >= least)  # type: ignore[misc]
        ssc.stop(stopSparkContext=False)

    sums = [seen[time] for time in sorted(seen)]
    assert sums[:8] == [1, 3, 6, 10, 15, 21, 28, 36]


def test_an_open_receiver_is_stopped_at_once(ssc: StreamingContext) -> None:
    with socket.create_server((HOST, 0)) as server:
        ssc.socketTextStream(HOST, server.getsockname()[1]).reduce(add).pprint()
        ssc.start()
        began = time.monotonic()
        ssc.stop(stopSparkContext=False)

    assert time.monotonic() - began < WITHIN_S
    assert not [t for t in threading.enumerate() if t.name == "dstream receiver"]

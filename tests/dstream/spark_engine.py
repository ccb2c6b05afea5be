"""A program run by pyspark.streaming, whose clock is moved by hand."""

from __future__ import annotations

import os
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import TYPE_CHECKING, Any

import pyspark.streaming as api
from pyspark import SparkConf
from pyspark.sql import SparkSession
from tests.dstream.program import START, Collect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark import SparkContext
    from tests.dstream.program import Body, Outputs, Program, Queue

_CONF = {
    "spark.streaming.clock": "org.apache.spark.streaming.util.ManualClock",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
_LIMIT = 60
"""Seconds that a batch may take."""


@contextmanager
def spark_context() -> Iterator[SparkContext]:
    """Start Spark, with two cores as the session of tests has, and with a clock moved by hand."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = SparkConf().setAll([*_CONF.items()])
    spark = SparkSession.builder.master("local[2]").config(conf=conf).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark.sparkContext
    finally:
        spark.stop()


def run_program(sc: SparkContext, program: Program) -> Outputs:
    """Run a program on its own queues."""
    return run_spark(sc, program.body, program.queues, program.interval, count=program.count)


def run_spark(
    sc: SparkContext,
    body: Body,
    batches: Sequence[Queue],
    interval: float = 1.0,
    *,
    count: int | None = None,
    folder: Path | None = None,
) -> Outputs:
    """Run a program for some batches and return what it gave."""
    with TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        own = folder or Path(scratch) / "files"
        own.mkdir(exist_ok=True)
        collect = Collect(api, own, interval)
        ssc: Any = api.StreamingContext(sc, interval)  # type: ignore[arg-type]
        run = _Run(ssc, interval)
        try:
            body(ssc, tuple(_stream(ssc, queue) for queue in batches), collect)
            run.start()
            for number in range(1, (count or max(map(len, batches), default=0)) + 1):
                collect.run_before(number)
                run.batch(number)
        finally:
            ssc.stop(stopSparkContext=False)
        return collect.outputs


def _stream(ssc: Any, queue: Queue) -> Any:
    rdds = [ssc.sparkContext.parallelize(list(batch)) for batch in queue]
    return ssc.queueStream(rdds or [ssc.sparkContext.parallelize([])])


class _Run(api.StreamingListener):
    """One context, which computes a batch when its clock moves."""

    def __init__(self, ssc: Any, interval: float) -> None:
        self._ssc, self._interval = ssc, interval
        self._completed: dict[int, Event] = {}

    def onBatchCompleted(self, batchCompleted: Any) -> None:  # noqa: N802, N803
        time_ms = batchCompleted.batchInfo().batchTime().milliseconds()
        self._completed[time_ms].set()

    def start(self) -> None:
        ssc = self._ssc
        # A batch without any output is not reported as completed, so there is always one.
        ssc.queueStream([ssc.sparkContext.parallelize([0])]).foreachRDD(lambda rdd: None)
        ssc.addStreamingListener(self)
        self._clock = ssc._jssc.ssc().scheduler().clock()
        self._clock.setTime(START * 1000)
        ssc.start()

    def batch(self, number: int) -> None:
        time_ms = round((START + number * self._interval) * 1000)
        completed = self._completed[time_ms] = Event()
        self._clock.setTime(time_ms)
        until = time.monotonic() + _LIMIT
        while not completed.wait(0.05):
            self._ssc.awaitTerminationOrTimeout(0.001)
            assert time.monotonic() < until, f"batch {number} does not end"
        self._ssc.awaitTerminationOrTimeout(0.001)

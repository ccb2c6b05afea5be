"""Contexts started, stopped and found again, in real time, by the documentation of pyspark."""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Callable
from operator import add
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from pyspark import SparkContext

_LIMIT = 30
INTERVAL, SLOWLY = 0.5, 2


def until(reached: Callable[[], bool]) -> bool:
    """Wait until something is so; False if it takes too long."""
    end = time.monotonic() + _LIMIT
    while not reached():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def active(api: ModuleType, sc: SparkContext, folder: Path) -> list[Any]:
    context = api.StreamingContext
    found = [context.getActive()]
    ssc = context(sc, INTERVAL)
    ssc.queueStream([[1]]).foreachRDD(lambda rdd: None)
    found.append(context.getActive())
    ssc.start()
    found += [context.getActive() is ssc, ssc.sparkContext is sc]
    found.append(ssc.awaitTerminationOrTimeout(0.1))
    found.append(ssc.awaitTermination(1))
    found.append(context.getActiveOrCreate(None, lambda: None) is ssc)
    ssc.stop(stopSparkContext=False)
    found.append(ssc.awaitTerminationOrTimeout(1))
    ssc.awaitTermination()
    found += [context.getActive(), context.getActiveOrCreate(None, lambda: "created")]
    ssc.stop(False)
    return [*found, sc.range(3).count()]


def restarted(api: ModuleType, sc: SparkContext, folder: Path) -> list[Any]:
    """A context from a checkpoint has the state, and reads the files that it has not read."""
    arriving, checkpoint = folder / "in", str(folder / "checkpoint")
    arriving.mkdir()
    outcome = folder / "outcome"

    def build() -> Any:
        ssc = api.StreamingContext(sc, SLOWLY)
        words = ssc.textFileStream(str(arriving)).flatMap(str.split).map(lambda word: (word, 1))
        states = words.updateStateByKey(lambda values, total: sum(values) + (total or 0))
        path = str(outcome)

        def write(rdd: Any) -> None:
            with open(path, "w") as file:
                file.write(repr(sorted(rdd.collect())))

        states.foreachRDD(write)
        return ssc

    def run(name: str, words: str, wanted: list[Any]) -> Any:
        ssc = api.StreamingContext.getOrCreate(checkpoint, build)
        ssc.start()
        time.sleep(SLOWLY)
        (folder / name).write_text(words)
        (folder / name).rename(arriving / name)
        until(lambda: outcome.exists() and outcome.read_text() == repr(wanted))
        ssc.stop(stopSparkContext=False)
        return outcome.read_text()

    found = [run("one", "a b a", [("a", 2), ("b", 1)])]
    found.append(run("two", "c a", [("a", 3), ("b", 1), ("c", 1)]))
    return [*found, len(os.listdir(arriving))]


def stopped_gracefully(api: ModuleType, sc: SparkContext, folder: Path) -> list[Any]:
    """What was received is computed before a graceful stop ends."""
    server = socket.create_server(("127.0.0.1", 0))
    ssc, lines = api.StreamingContext(sc, 2), []
    stream = ssc.socketTextStream("127.0.0.1", server.getsockname()[1])
    stream.foreachRDD(lambda rdd: lines.extend(rdd.collect()))
    ssc.start()
    connection = server.accept()[0]
    connection.sendall("".join(f"line {number}\n" for number in range(1000)).encode())
    time.sleep(1)
    ssc.stop(stopSparkContext=False, stopGraceFully=True)
    connection.close()
    server.close()
    return [len(lines), lines[:3], lines[-1:]]


def batches_in_real_time(api: ModuleType, sc: SparkContext, folder: Path) -> list[Any]:
    """Batch times are on the grid of the interval, without a gap."""
    ssc = api.StreamingContext(sc, INTERVAL)
    times: list[float] = []
    sums: list[int] = []
    numbers = ssc.queueStream([[number] for number in range(5)])

    def note(time: Any, rdd: Any) -> None:
        times.append(time.timestamp())
        sums.extend(rdd.collect())

    numbers.reduceByWindow(add, None, 2 * INTERVAL, INTERVAL).foreachRDD(note)
    ssc.start()
    until(lambda: len(times) >= 7)
    ssc.stop(stopSparkContext=False)
    steps = {later - sooner for sooner, later in itertools.pairwise(times)}
    return [sums[:6], steps, times[0] % INTERVAL]


Lifecycle = Callable[["ModuleType", "SparkContext", "Path"], list[Any]]
LIFECYCLES: dict[Lifecycle, list[Any]] = {
    active: [None, None, True, True, False, None, True, True, None, "created", 3],
    restarted: [repr([("a", 2), ("b", 1)]), repr([("a", 3), ("b", 1), ("c", 1)]), 2],
    stopped_gracefully: [1000, ["line 0", "line 1", "line 2"], ["line 999"]],
    batches_in_real_time: [[0, 1, 3, 5, 7, 4], {INTERVAL}, 0.0],
}
"""What each returns."""

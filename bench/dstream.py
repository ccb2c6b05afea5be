"""Programs of DStreams: ours against pyspark.streaming, with a state of a million keys.

Each engine runs in a process of its own, with the same queue of RDDs and the same interval, so
short that batches wait for each other: the time of a batch is from its first job to its last.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from importlib import import_module
from operator import add, sub
from typing import TYPE_CHECKING, Any

from bench.memory import Peak
from bench.stream import write_report
from millstream.spark.session import open_session

if TYPE_CHECKING:
    from collections.abc import Callable

ENGINES = {"ours": "millstream.dstream", "pyspark.streaming": "pyspark.streaming"}
INTERVAL_S = 0.2
SECONDS = 150
"""After which a lane ends with the batches that it has."""


class Lane:
    """What a lane runs: how many keys there are, rows a batch, and batches."""

    def __init__(self, keys: int, rows: int, batches: int, make: Callable[[Any], Any]) -> None:
        self.keys, self.rows, self.batches, self.make = keys, rows, batches, make


def counted(pairs: Any) -> Any:
    return pairs.updateStateByKey(count)


def count(new: list[int], total: int | None) -> int:
    return sum(new) + (total or 0)


def windowed(pairs: Any) -> Any:
    return pairs.reduceByKeyAndWindow(add, sub, 20 * INTERVAL_S, INTERVAL_S)


LANES = {
    "updateStateByKey, 1 M keys": Lane(1_000_000, 50_000, 14, counted),
    "updateStateByKey, 10 k keys": Lane(10_000, 2_000, 510, counted),
    "reduceByKeyAndWindow with inverse, 20 slides": Lane(100_000, 20_000, 40, windowed),
}


def run_lane(engine: str, name: str) -> dict[str, Any]:
    """Run one program on one engine in this process, and time its batches."""
    warnings.simplefilter("ignore")
    api, lane, dice = import_module(ENGINES[engine]), LANES[name], random.Random(7)
    spark = open_session("bench", master="local[2]", conf={"spark.driver.memory": "3g"})
    sc = spark.sparkContext
    all_keys = [(key, 1) for key in range(lane.keys)]
    some = [[(dice.randrange(lane.keys), 1) for _ in range(lane.rows)] for _ in range(20)]
    several = [sc.parallelize(rows, 2) for rows in some]
    queue = [sc.parallelize(all_keys, 2), *(several[n % 20] for n in range(lane.batches))]
    ended, times = threading.Event(), []

    class Timed(api.StreamingListener):  # type: ignore[name-defined,misc]
        def onBatchCompleted(self, batchCompleted: Any) -> None:  # noqa: N802, N803
            times.append(int(str(batchCompleted.batchInfo().processingDelay())))
            if len(times) > lane.batches:
                ended.set()

    with tempfile.TemporaryDirectory() as home, Peak() as peak:
        ssc = api.StreamingContext(sc, INTERVAL_S)
        ssc.checkpoint(home)
        lane.make(ssc.queueStream(queue)).count().foreachRDD(lambda rdd: rdd.collect())
        ssc.addStreamingListener(Timed())
        began = time.monotonic()
        ssc.start()
        ended.wait(SECONDS)
        took = time.monotonic() - began
        ssc.stop(stopSparkContext=False)
    found = [each / 1000 for each in times[1 : lane.batches + 1]]
    later = found[len(found) // 2 :]
    return {
        "batches": len(found),
        "s in all": round(took, 1),
        "s a batch, first with all keys": times[0] / 1000,
        "s a batch, about the 10th": round(statistics.median(found[7:13]), 3),
        "s a batch, the last ones": round(statistics.median(found[-20:]), 3),
        "slowest s of the second half": round(max(later), 3),
        "rows/s in steady state": round(lane.rows / statistics.fmean(later)),
        "MiB": round(peak.mib),
    }


def measured(engine: str, name: str) -> dict[str, Any]:
    """Run one program on one engine, in a process of its own."""
    command = [sys.executable, "-m", "bench.dstream", engine, name]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compared(name: str, found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Put what both engines took side by side."""
    lane = LANES[name]
    ours, other = (found[each]["rows/s in steady state"] for each in ENGINES)
    about = {"keys": lane.keys, "rows a batch": lane.rows}
    return {**about, **found, "ratio": round(ours / other, 2), "wanted at least": 2}


def main() -> None:
    report = {
        name: compared(name, {engine: measured(engine, name) for engine in ENGINES})
        for name in LANES
    }
    write_report("dstream", report)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(run_lane(*sys.argv[1:])))
    else:
        main()

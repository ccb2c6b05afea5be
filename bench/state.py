"""Keyed state: a running count by ours, by Spark's own aggregate, and by hand for each key."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Row, functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import millstream as ms
from bench.memory import Peak
from bench.stream import (
    Lane,
    rate,
    rate_in_all,
    run,
    run_in_turn,
    session,
    stream_of,
    write_batches,
    write_report,
)
from millstream.spark.session import stop_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

    from bench.stream import Batch

    Way = Callable[[DataFrame], DataFrame]

KEYS, ROWS, FEW = 1_000_000, 250_000, 1_000
LOADS, STEADY, SMALL = 4, 4, 40
"""Batches that bring all keys, batches of many rows, and batches of few."""
IN_TURN = 120
"""Batches of few rows for ours and by hand in turn; the first half warms Java up."""
SHARE = 50
"""By hand, one key in so many: it would take too long with all of them."""
HEAP = "512m"
COUNTS = "user STRING, n BIGINT"


@ms.stateful(key="user", state="n BIGINT", emits=COUNTS, order="arrival")
def counted(
    user: str, rows: tuple[Any, ...], state: Any, _timer: ms.Timer
) -> Iterator[tuple[str, int]]:
    state.n = (state.n or 0) + len(rows)
    yield user, state.n


class ByRow(StatefulProcessor):
    """The count of a user, as Spark's documentation has it with rows."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._n = handle.getValueState("n", "n BIGINT")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        found = self._n.get()
        n = (found[0] if found else 0) + sum(1 for _ in rows)
        self._n.update((n,))
        yield Row(user=key[0], n=n)


class ByFrame(StatefulProcessor):
    """The same with frames of pandas."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._n = handle.getValueState("n", "n BIGINT")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        found = self._n.get()
        n = (found[0] if found else 0) + sum(len(frame) for frame in rows)
        self._n.update((n,))
        yield pd.DataFrame({"user": [key[0]], "n": [n]})


def by_spark(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").agg(F.count("*").alias("n"))


def by_row(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").transformWithState(ByRow(), COUNTS, "Update", "None")


def by_frame(rows: DataFrame) -> DataFrame:
    return rows.groupBy("user").transformWithStateInPandas(ByFrame(), COUNTS, "Update", "None")


def ours(rows: DataFrame) -> DataFrame:
    return counted(rows)


def batches_of(dice: np.random.Generator, keys: int, rows: int) -> Iterator[pa.Table]:
    """Make up every key once, then rows of any of them, then batches of few rows."""
    yield from all_of(dice, keys)
    yield from some_of(dice, keys, rows, STEADY)
    yield from some_of(dice, keys, FEW, SMALL)


def all_of(dice: np.random.Generator, keys: int) -> Iterator[pa.Table]:
    """Make up every key once."""
    yield from (_visits(users) for users in np.array_split(dice.permutation(keys), LOADS))


def some_of(dice: np.random.Generator, keys: int, rows: int, batches: int) -> Iterator[pa.Table]:
    """Make up rows of any key."""
    yield from (_visits(dice.integers(0, keys, rows)) for _ in range(batches))


def _visits(users: np.ndarray[Any, Any]) -> pa.Table:
    return pa.table({"user": [f"user-{n:07d}" for n in users], "amount": users % 1000})


def measured(spark: SparkSession, way: Way, files: Path, place: Path) -> list[Batch]:
    """Count in one of the ways; return how it went."""
    checkpoint = place / f"{files.name}-{way.__name__}"
    batches = run(way(stream_of(spark, files)), checkpoint, mode=mode_of(way))
    large, small = rates(batches)
    print(
        f"{way.__name__}, {files.name}: {large:.0f} rows/s, small batches {small:.0f}", flush=True
    )
    return batches


def mode_of(way: Way) -> str:
    return "append" if way is ours else "update"


def small_in_turn(
    spark: SparkSession, ways: Sequence[Way], dice: np.random.Generator, place: Path
) -> list[list[Batch]]:
    """Load all keys in each way; then give each a small batch, one after the other."""
    tables, lanes = [*all_of(dice, KEYS)], list[Lane]()
    for way in ways:
        files, checkpoint = place / f"in-turn-{way.__name__}", place / f"turns-{way.__name__}"
        write_batches(files, tables)
        run(way(stream_of(spark, files)), checkpoint, mode=mode_of(way))
        lanes.append(Lane(files, way(stream_of(spark, files)), checkpoint, mode_of(way)))
        print(f"{way.__name__}: all keys are loaded", flush=True)
    return run_in_turn(lanes, some_of(dice, KEYS, FEW, IN_TURN))


def rates(batches: Sequence[Batch]) -> tuple[float, float]:
    """Rows a second once all keys are there: of large batches, and of small ones."""
    return rate(batches[LOADS : LOADS + STEADY]), rate(batches[-SMALL // 2 :])


def in_little_memory(files: Path, place: Path) -> dict[str, Any]:
    """Count in a process of its own, with a small heap; give what it took at most."""
    words = [sys.executable, "-m", "bench.state", str(files), str(place)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def take_note_of_memory(files: Path, place: Path) -> None:
    with Peak() as peak:
        spark = session(place, **{"spark.driver.memory": HEAP})
        batches = measured(spark, ours, files, place)
        stop_session(spark)
    last, large = batches[-1].state[0], rates(batches)[0]
    note = {
        "heap of the JVM": HEAP,
        "all processes at most, MiB": round(peak.mib),
        "wanted at most, MiB": 2048,
        "of it RocksDB, MiB": round(last["memoryUsedBytes"] / 2**20),
        "state on disk, MiB": round(last["customMetrics"]["rocksdbSstFileSize"] / 2**20),
        "rows/s": round(large),
    }
    print(json.dumps(note))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
        place = Path(temporary)
        dice = np.random.default_rng(1)
        whole, share = place / "all keys", place / "a share"
        write_batches(whole, batches_of(dice, KEYS, ROWS))
        write_batches(share, batches_of(dice, KEYS // SHARE, ROWS // SHARE))
        memory = in_little_memory(whole, place / "memory")
        print(memory, flush=True)
        spark = session(place)
        ways: dict[Path, tuple[Way, ...]] = {
            share: (ours, by_spark, by_row, by_frame),
            whole: (ours, by_spark),
        }
        found = {f: {w: measured(spark, w, f, place) for w in ws} for f, ws in ways.items()}
        turns = small_in_turn(spark, (ours, by_row), dice, place)
        stop_session(spark)
    for ways_found in (*(of_ways.values() for of_ways in found.values()), turns):
        wanted, *others = [[b.answered for b in batches] for batches in ways_found]
        assert all(other == wanted for other in others)
    reported = report(found[whole], found[share], turns)
    write_report("state", {**reported, "memory with all keys": memory})


def report(
    whole: dict[Way, list[Batch]], share: dict[Way, list[Batch]], turns: list[list[Batch]]
) -> dict[str, Any]:
    keys = whole[by_spark][-1].state[0]["numRowsTotal"]
    assert keys == KEYS
    large, small = rates(whole[ours])
    reported: dict[str, Any] = {"keys": keys, "rows a batch": ROWS, "rows a small batch": FEW}
    reported["ours, rows/s"] = {"large batches": round(large), "small batches": round(small)}
    aggregate = rates(whole[by_spark])
    reported["Spark's aggregate"] = {
        **_rates(aggregate),
        "ratio": round(large / aggregate[0], 2),
        "wanted at least": 0.5,
    }
    for name, way in (("by hand, Row", by_row), ("by hand, pandas", by_frame)):
        theirs = rates(share[way])
        reported[name] = {
            **_rates(theirs),
            "ratio": round(large / theirs[0], 1),
            "wanted at least": 10,
            "small batches, ratio": round(rates(share[ours])[1] / theirs[1], 2),
            "of small batches, wanted at least": 1,
        }
    warm, theirs_warm = (batches[IN_TURN // 2 :] for batches in turns)
    reported["small batches in turn, all keys in both"] = {
        "ours, rows/s": round(rate(warm)),
        "by hand, Row, rows/s": round(rate(theirs_warm)),
        "ratio": round(rate(warm) / rate(theirs_warm), 2),
        "ratio in all": round(rate_in_all(warm) / rate_in_all(theirs_warm), 2),
        "wanted at least": 1,
    }
    reported["by hand is given"] = f"1 in {SHARE} keys and rows, and the same small batches"
    reported["ours, given the same, rows/s"] = _rates(rates(share[ours]))
    return reported


def _rates(found: tuple[float, float]) -> dict[str, float]:
    return {"large batches": round(found[0]), "small batches": round(found[1])}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take_note_of_memory(*map(Path, sys.argv[1:]))
    else:
        main()

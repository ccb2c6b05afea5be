"""How much state operators keep over a long stream, in which keys come and go."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

import millstream as ms
from bench.stream import run, session, stream_of, write_batches, write_report
from millstream.operators.state.parts import HEAD, HEAD_AT, KEYS
from millstream.spark.session import stop_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from bench.stream import Batch

BATCHES, ROWS, USERS = 240, 200, 60
"""Of the users, as many are new in every batch, and none is seen for more than three."""
AT_ONCE = 2
SECOND_US = 1_000_000
BATCH_US = 60 * SECOND_US
START_US = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp()) * SECOND_US


@ms.stateful(key="user", state="n BIGINT", emits="user STRING, n BIGINT", timeout="event 5 minutes")
def counted(
    user: str, rows: tuple[Any, ...], state: Any, timer: ms.Timer
) -> Iterator[tuple[str, int]]:
    if timer.fired:
        yield user, state.n
    else:
        state.n = (state.n or 0) + len(rows)


def windowed(events: DataFrame) -> DataFrame:
    return events.groupBy(F.window("at", "1 minute").alias("window"), "user").count()


def shown_and_clicked(events: DataFrame) -> tuple[DataFrame, DataFrame]:
    shown, clicked = (events.where(F.col("kind") == kind) for kind in ("show", "click"))
    return shown.select("user", "at"), clicked.select("user", "at", "kind")


def joined(events: DataFrame) -> DataFrame:
    return ms.join_within(*shown_and_clicked(events), on="user", within="5 minutes", how="left")


def latest(events: DataFrame) -> DataFrame:
    shown, clicked = shown_and_clicked(events)
    return ms.join_as_of(clicked, shown, on="user", within="5 minutes")


def visit() -> Any:
    pattern = ms.pattern(key="user", within="5 minutes").step("show", "kind = 'show'")
    return pattern.step("click", "kind = 'click'", times=2)


@dataclass(frozen=True)
class Operator:
    """What is run, and what it calls its state if many keys share an entry of it."""

    of: Callable[[DataFrame], DataFrame]
    parts: str | None = None


OPERATORS = {
    "windowed count": Operator(windowed),
    "dedup by user and event time": Operator(lambda e: ms.dedup(e, ["user", "at"])),
    "dedup within 5 minutes": Operator(lambda e: ms.dedup(e, "user", within="5 minutes"), "kept"),
    "join within 5 minutes": Operator(joined),
    "join as of": Operator(latest, "kept"),
    "keyed state with a time-out": Operator(counted, "kept_counted"),
    "pattern": Operator(lambda e: ms.match(e, visit()), "kept"),
    "absence of a pattern": Operator(lambda e: ms.absent(e, visit()), "kept"),
    "for contrast, dedup by user for ever": Operator(lambda e: ms.dedup(e, "user")),
}


def events_of(dice: np.random.Generator, number: int) -> pa.Table:
    """Make up a minute of events, out of order by up to half of it."""
    us = START_US + number * BATCH_US + dice.integers(-BATCH_US // 2, BATCH_US, ROWS)
    users = number * USERS + dice.integers(0, 3 * USERS, ROWS)
    return pa.table(
        {
            "user": [f"user-{n:06d}" for n in users],
            "at": pa.array(us, pa.timestamp("us", "UTC")),
            "kind": [("show", "click")[n] for n in dice.integers(0, 2, ROWS)],
        }
    )


def grown(spark: SparkSession, operator: Operator, place: Path) -> dict[str, Any]:
    """Run a stream in four legs; look at the state after each."""
    dice, files, checkpoint = np.random.default_rng(1), place / "files", place / "checkpoint"
    legs: list[list[int]] = []
    keys: list[int] = []
    sizes: list[int] = []
    for leg in range(4):
        numbers = range(leg * BATCHES // 4, (leg + 1) * BATCHES // 4)
        write_batches(files, (events_of(dice, number) for number in numbers))
        events = stream_of(spark, files).withWatermark("at", "1 minute")
        legs.append([state_rows(batch) for batch in run(operator.of(events), checkpoint)])
        if operator.parts:
            entries = entries_of(spark, checkpoint, operator.parts)
            keys.append(keys_in(entries))
            sizes.append(sum(len(packed) for _, packed in entries))
    reported: dict[str, Any] = {"batches": sum(map(len, legs))}
    reported["state rows at 25, 50, 75, 100 %"] = [leg[-1] for leg in legs]
    reported["most state rows by quarter"] = [max(leg) for leg in legs]
    if operator.parts:
        reported["keys in them"], reported["bytes in them"] = keys, sizes
    last = keys if operator.parts else [max(leg) for leg in legs]
    return {**reported, "last quarter to second": round(last[3] / last[1], 2)}


def state_rows(batch: Batch) -> int:
    return sum(operator["numRowsTotal"] for operator in batch.state)


def entries_of(spark: SparkSession, checkpoint: Path, name: str) -> list[tuple[int, bytes]]:
    """Read the entries that hold many keys each, with their places."""
    reader = spark.read.format("statestore").option("stateVarName", name)
    entries = reader.load(str(checkpoint)).select("user_map_key.part", "user_map_value.packed")
    return [(part, bytes(packed)) for part, packed in entries.collect()]


def keys_in(entries: list[tuple[int, bytes]]) -> int:
    """Count the keys that are remembered; a head knows better than a part."""
    stored: dict[str, bytes | None] = {}
    recent: dict[str, bytes | None] = {}
    for place, packed in entries:
        if place != HEAD_AT:
            stored |= KEYS.decode(packed).memories
        else:
            for keys in HEAD.decode(packed).recent.values():
                recent |= keys.memories
    return sum(memory is not None for memory in (stored | recent).values())


def main(*names: str) -> None:
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
        place = Path(temporary)
        spark = session(place)

        def look(name: str) -> tuple[str, dict[str, Any]]:
            reported = grown(spark, OPERATORS[name], place / str([*OPERATORS].index(name)))
            print(name, reported, flush=True)
            return name, reported

        # A small batch mostly waits: for files, for Python, for its turn.
        with ThreadPoolExecutor(AT_ONCE) as several:
            reported = dict(several.map(look, names or OPERATORS))
        stop_session(spark)
    write_report("growth", {"rows a batch": ROWS, "new users a batch": USERS, **reported})


if __name__ == "__main__":
    main(*sys.argv[1:])

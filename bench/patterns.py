"""Patterns of which one row in a hundred meets the first step: ours, and a matcher by hand."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row, functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import millstream as ms
from bench.stream import in_all, rate, run, session, stream_of, write_batches, write_report
from millstream.spark.session import stop_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
    )

    from bench.stream import Batch

CARDS, ROWS, BATCHES, WARM = 30_000, 100_000, 9, 3
SHARE = 5
"""By hand, one card in so many, with all of its rows."""
SECOND_US = 1_000_000
BATCH_US, JITTER_US, WITHIN_US = 60 * SECOND_US, 5 * SECOND_US, 300 * SECOND_US
START_US = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp()) * SECOND_US
ANSWERS = "card STRING, since BIGINT, until BIGINT, amount DOUBLE"
BIG = {"one row in a hundred meets the last step": 990.0, "every other row does": 500.0}


def ours(payments: DataFrame, big: float) -> DataFrame:
    pattern = (
        ms.pattern(key="card", within="5 minutes")
        .step("small", "amount < 10")
        .step("big", f"amount >= {big} AND country <> small.country")
    )
    selected = "card, unix_micros(small.at) AS since, unix_micros(ended) AS until, big.amount"
    return ms.match(payments, pattern, select=selected)


def by_hand(payments: DataFrame, big: float) -> DataFrame:
    rows = payments.select("card", F.unix_micros("at").alias("us"), "amount", "country")
    return rows.groupBy("card").transformWithState(ByHand(big), ANSWERS, "Append", "EventTime")


class ByHand(StatefulProcessor):
    """A small payment, then a big one from another country, for one card."""

    def __init__(self, big: float) -> None:
        self._big = big

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._memory = handle.getValueState("memory", "text STRING")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        wanted = [
            (r.us, r.amount, r.country) for r in rows if r.amount < 10 or r.amount >= self._big
        ]
        if wanted:
            yield from self._go_on(key[0], wanted, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        fired = expiredTimerInfo.getExpiryTimeInMs()
        yield from self._go_on(key[0], [], timerValues.getCurrentWatermarkInMs(), fired)

    def _go_on(
        self, card: str, new: list[Any], watermark_ms: int, fired: int | None = None
    ) -> Iterator[Row]:
        found = self._memory.get()
        timer, begun, waiting = json.loads(found[0]) if found else (None, [], [])
        waiting = sorted([*waiting, *map(list, new)])
        passed = [row for row in waiting if row[0] <= watermark_ms * 1000]
        waiting = waiting[len(passed) :]
        for us, amount, country in passed:
            begun = [first for first in begun if us - first[0] <= WITHIN_US]
            if amount < 10:
                begun.append((us, country))
                continue
            since = next((first for first, other in begun if other != country), None)
            if since is not None:
                begun = []
                yield Row(card=card, since=since, until=us, amount=amount)
        self._keep(None if timer == fired else timer, begun, waiting, is_held=found is not None)

    def _keep(
        self, timer: int | None, begun: list[Any], waiting: list[Any], *, is_held: bool
    ) -> None:
        dues = [first + WITHIN_US for first, _ in begun[-1:]] + [us for us, *_ in waiting[:1]]
        if not dues:
            if is_held:
                self._memory.clear()
            return
        if timer is None:
            timer = min(dues) // 1000 + 1
            self._handle.registerTimer(timer)
        self._memory.update((json.dumps((timer, begun, waiting)),))


def payments_of(dice: np.random.Generator, number: int) -> pa.Table:
    """Make up a minute of payments, which arrive some seconds out of order."""
    step = BATCH_US // ROWS
    us = START_US + number * BATCH_US + np.arange(ROWS) * step
    order = np.argsort(us + dice.integers(0, JITTER_US, ROWS))
    cards, countries = dice.integers(0, CARDS, ROWS), dice.integers(0, 5, ROWS)
    return pa.table(
        {
            "card": [*map(name_of, cards)],
            "at": pa.array(us[order], pa.timestamp("us", "UTC")),
            "amount": dice.integers(0, 100_000, ROWS) / 100,
            "country": [("de", "fr", "it", "es", "nl")[n] for n in countries],
        }
    )


def last_of_all(number: int) -> pa.Table:
    """Make up a payment so late that all others are final."""
    late = START_US + (number + 100) * BATCH_US
    row = {"card": ["last"], "amount": [100.0], "country": ["de"]}
    return pa.table({**row, "at": pa.array([late], pa.timestamp("us", "UTC"))})


def share_of(payments: pa.Table) -> pa.Table:
    """Keep one card in so many, with all of its payments."""
    return payments.filter(pc.less(payments["card"], pa.scalar(name_of(CARDS // SHARE))))


def name_of(card: int) -> str:
    return f"card-{card:06d}"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
        place = Path(temporary)
        dice = np.random.default_rng(1)
        payments = [payments_of(dice, number) for number in range(BATCHES)]
        write_batches(place / "all", [*payments, last_of_all(BATCHES)])
        write_batches(place / "share", [*map(share_of, payments), last_of_all(BATCHES)])
        spark = session(place)
        reported = {name: compared(spark, big, place) for name, big in BIG.items()}
        stop_session(spark)
    given = f"1 in {SHARE} cards, with all of their rows"
    shape = {"cards": CARDS, "rows a batch": ROWS, "by hand is given": given}
    write_report("patterns", {**shape, **reported})


def compared(spark: SparkSession, big: float, place: Path) -> dict[str, Any]:
    """Look for the pattern in both ways."""

    def look(way: Any, files: str) -> list[Batch]:
        payments = stream_of(spark, place / files).withWatermark("at", "10 seconds")
        batches = run(way(payments, big), place / f"{files}-{way.__name__}-{big}")
        print(f"{way.__name__}, {files}: {rate(batches[WARM:BATCHES]):.0f} rows/s", flush=True)
        return batches

    share, theirs, whole = look(ours, "share"), look(by_hand, "share"), look(ours, "all")
    assert in_all(share) == in_all(theirs)
    rates = [rate(batches[WARM:BATCHES]) for batches in (whole, theirs, share)]
    return {
        "matches": in_all(whole)[0],
        "ours, rows/s": round(rates[0]),
        "by hand, rows/s": round(rates[1]),
        "ratio": round(rates[0] / rates[1], 1),
        "wanted at least": 10,
        "ours, given the same, rows/s": round(rates[2]),
    }


if __name__ == "__main__":
    main()

"""Buckets of keys as Spark drives them: batches, timers and first states, without Spark."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues
from tests.operators.state.chance import (
    calls_of,
    reported,
    rows_of,
    text_of,
    us_of,
    visits,
    wanted_visits,
)

from millstream.operators.state import buckets, prefetch
from millstream.operators.state.buckets import Buckets, Keeping
from millstream.operators.state.calls import INITIAL_US
from millstream.operators.state.parts import HEAD, HEAD_AT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.operators.state.chance import Row


class Entries(dict[Any, Any]):
    """State of one bucket, as a processor sees it."""

    getValue = dict.get  # noqa: N815
    updateValue = dict.__setitem__  # noqa: N815
    removeKey = dict.__delitem__  # noqa: N815
    iterator = dict.items


@pytest.fixture(autouse=True)
def _without_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        prefetch, "read_parts", lambda entries, places: {p: entries[p,][0] for p in places}
    )


class Bucket:
    """What Spark is to a processor: one bucket, its state and its timers."""

    def __init__(self, processor: Buckets) -> None:
        self.maps, self.timers = dict[str, Entries](), set[int]()
        self.processor, self.counts = processor, {1}
        processor.init(self)  # type: ignore[arg-type]

    def getMapState(self, name: str, *_: Any) -> Entries:  # noqa: N802
        return self.maps.setdefault(name, Entries())

    def registerTimer(self, ms: int) -> None:  # noqa: N802
        self.timers.add(ms)

    def deleteTimer(self, ms: int) -> None:  # noqa: N802
        self.timers.remove(ms)

    def batch(self, rows: Sequence[tuple[Any, ...]], watermark_ms: int) -> list[tuple[str]]:
        """Give the answers to a batch, and then to the timers that the watermark has passed."""
        values = TimerValues(0, watermark_ms)
        frames: list[pd.DataFrame] = []
        if rows:
            frames += self.processor.handleInputRows((7,), iter([_frame(rows)]), values)
        for ms in sorted(ms for ms in self.timers if ms <= watermark_ms):
            expired = ExpiredTimerInfo(ms)
            frames += self.processor.handleExpiredTimer((7,), values, expired)
            self.timers.discard(ms)
        [entries] = self.maps.values()
        if head := entries.get((HEAD_AT,)):
            self.counts.add(HEAD.decode(head[0]).count)
        return [(text,) for frame in frames for text in frame["answer"]]


def _frame(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["bucket", "key", "us", "text"])


def _row(user: str, second: int, value: int) -> tuple[Any, ...]:
    return 7, json.dumps({"user": user}), us_of(second), text_of(user, second, value)


def run(rows: list[Row], dice: random.Random, aside: Path) -> tuple[list[Any], int, Bucket]:
    """Have rows of several users arrive in batches; give answers and how many were put aside."""
    bucket = Bucket(Buckets(calls_of(visits), ["answer"], Keeping("kept_visits", aside=str(aside))))
    answers, raised, watermark, is_over = list[Any](), 0, -1000, False
    while not is_over:
        is_over = not rows and watermark == 300
        come = [r for r in rows if r[1] <= watermark or dice.random() < 0.4]
        rows = [r for r in rows if not any(r is c for c in come)]
        ms = us_of(watermark) // 1000 if watermark > -1000 else 0
        answers += bucket.batch([_row(*row) for row in come], ms)
        for file in aside.glob("*.parquet"):
            raised += pq.read_metadata(file).num_rows
            file.unlink()
        watermark = max(watermark, min(dice.randrange(-20, 400), 300))
        watermark = min([watermark, *(r[1] - 1 for r in rows)])
    return answers, raised, bucket


@pytest.mark.parametrize("recent", [0, 100, 250, 2**16])
def test_buckets_answer_as_plain_python_and_keep_nothing_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recent: int
) -> None:
    monkeypatch.setattr(buckets, "RECENT", recent)
    found = aside = 0
    for seed in range(60):
        dice = random.Random(seed)
        rows = rows_of(dice, users="abcd", most=20)
        wanted = [
            answer
            for user in "abcd"
            for answer in wanted_visits([r for r in rows if r[0] == user], 300)
        ]

        answers, raised, bucket = run(list(rows), dice, tmp_path)

        assert sorted(reported(answers), key=str) == sorted(wanted, key=str), rows
        assert raised == sum(value == 13 for _, _, value in rows)
        assert not bucket.maps["kept_visits"]
        assert not bucket.timers
        found, aside = found + len(wanted), aside + raised

    assert found > 500
    assert aside > 50


@pytest.mark.parametrize("recent", [0, 150, 400])
def test_a_bucket_of_many_keys_is_kept_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recent: int
) -> None:
    monkeypatch.setattr(buckets, "LARGEST", 100)
    monkeypatch.setattr(buckets, "RECENT", recent)
    counts: set[int] = set()
    for seed in range(30):
        dice = random.Random(seed)
        users = "abcdefghijklmnop"[: dice.randrange(1, 17)]
        rows = rows_of(dice, users=users, most=60)
        wanted = [
            answer
            for user in users
            for answer in wanted_visits([r for r in rows if r[0] == user], 300)
        ]

        answers, _, bucket = run(list(rows), dice, tmp_path)

        assert sorted(reported(answers), key=str) == sorted(wanted, key=str), rows
        assert not bucket.maps["kept_visits"]
        assert not bucket.timers
        counts |= bucket.counts

    assert {1, 16, 64} <= counts
    assert max(counts) <= buckets.MOST


def test_keys_begin_with_what_they_are_given(tmp_path: Path) -> None:
    bucket = Bucket(Buckets(calls_of(visits), ["answer"], Keeping("kept_visits")))
    given = [(7, '{"user": "a"}', INITIAL_US, '{"values":[40,2]}')]

    bucket.processor.handleInitialState((7,), _frame(given), TimerValues(0, 0))
    answers = bucket.batch([_row("a", 0, 5)], us_of(30) // 1000)

    assert [answer[-1] for answer in reported(answers) if answer[1] == "end"] == [47]


@pytest.mark.parametrize("recent", [0, 2**16])
def test_a_key_is_answered_when_it_is_due_and_not_when_its_neighbours_are(
    monkeypatch: pytest.MonkeyPatch, recent: int
) -> None:
    monkeypatch.setattr(buckets, "RECENT", recent)
    bucket = Bucket(Buckets(calls_of(visits), ["answer"], Keeping("kept_visits")))

    none = bucket.batch([_row("a", 10, 5), _row("b", 200, 5)], us_of(0) // 1000)
    early = bucket.batch([], us_of(100) // 1000)
    later = bucket.batch([], us_of(300) // 1000)

    assert none == []
    assert {answer[0] for answer in reported(early)} == {"a"}
    assert {answer[0] for answer in reported(later)} == {"b"}

from __future__ import annotations

import threading
from itertools import chain, repeat

import pytest
from py4j.protocol import Py4JNetworkError

from millstream.cli.spark_progress import showing
from millstream.spark.jobs import LongJob

CLEAR = "\r\x1b[K"


def test_work_that_takes_long_shows_its_tasks_and_an_estimate_and_leaves_no_line() -> None:
    written, looks = list[str](), threading.Semaphore(0)
    seen = chain(
        [(), (LongJob("batch", 10, 40, 5000, 6.0),), (LongJob("batch", 0, 8, 0, 2.0),)],
        repeat(()),
    )

    def look() -> tuple[LongJob, ...]:
        looks.release()
        return next(seen)

    with showing("batch", look, written.append, every_s=0.001):
        for _ in range(5):
            assert looks.acquire(timeout=30)

    assert written == [
        f"{CLEAR}  batch: 10 of 40 tasks done, 5 000 rows read, about 18 s left",
        f"{CLEAR}  batch: 0 of 8 tasks done",
        CLEAR,
    ]


def test_a_line_is_taken_away_when_the_work_ends_or_raises() -> None:
    written, is_written = list[str](), threading.Event()

    def write(text: str) -> None:
        written.append(text)
        is_written.set()

    def fail() -> None:
        with showing("b", lambda: [LongJob("b", 1, 2, 0, 3.0)], write, every_s=0.001):
            assert is_written.wait(30)
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        fail()

    assert written[0] == f"{CLEAR}  b: 1 of 2 tasks done, about 3 s left"
    assert written[-1] == CLEAR


def test_a_spark_that_is_gone_ends_nothing() -> None:
    looks = threading.Semaphore(0)

    def look() -> tuple[LongJob, ...]:
        looks.release()
        raise Py4JNetworkError

    with showing("b", look, lambda _: None, every_s=0.001):
        assert looks.acquire(timeout=30)
        assert looks.acquire(timeout=30)

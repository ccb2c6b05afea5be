"""The property above all: however rows arrive, whatever crashes, tables equal the batch answer."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from millstream.errors import MillstreamError, NotDeterministicError
from millstream.lake.home import Home
from millstream.settings import resolve_master
from millstream.spark.session import open_session
from millstream.testing.course import Arrival, Course, CourseStep, arrivals_of, begin, courses
from millstream.testing.script import Script
from millstream.testing.standin import without_sinks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from millstream.app import App
    from millstream.testing.course import Record, Rows

_AT_ONCE = 3
"""Runs that go side by side: their waits overlap."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What was tried and found consistent."""

    app: str
    runs: int
    records: str
    """How many there were to choose from."""
    happened: Mapping[str, int]
    """How often each action occurred: batches, restarts, crashes by their point, …"""
    tables: tuple[str, ...]
    left_out: tuple[str, ...]
    """What is served without a key by which a table could stand in for it."""
    seconds: float
    seed: int


def assert_prefix_consistent(
    app: App,
    rows: Rows | Sequence[Record],
    *,
    runs: int = 100,
    seed: int = 0,
    spark: SparkSession | None = None,
) -> None:
    """Prove on many runs that batch = stream = replay, or raise with a short script.

    Args:
        app: The app; its sources are fed by the runs.
        rows: Records by source, or those of the only source, by their columns or raw; in a run
            they arrive in another order, but not so late that the watermark has passed them.
        runs: How many runs to try.
        seed: Chooses the runs.
        spark: The session to use; by default the one that is open, or a new one.

    Raises:
        NOT_PREFIX_CONSISTENT: A run shows a difference; the shortest script found is in it.
        NotDeterministicError: A function gives other rows for the same rows.
    """
    app.raise_faults(places=False)
    arrivals = arrivals_of(app.graph, rows)
    session = spark or open_session(app.name, master=resolve_master(None, code=None).value)
    prove(app, arrivals, session, runs=runs, seed=seed)


def prove(
    app: App,
    arrivals: Sequence[Arrival],
    spark: SparkSession,
    *,
    runs: int,
    seed: int,
    on_run: Callable[[int], None] = lambda _: None,
) -> Proof:
    """Try runs until one fails, which is shrunk and raised, or until all have passed."""
    began, prover = time.monotonic(), _Prover(app, arrivals, spark, runs, on_run)
    kept = without_sinks(app.graph)

    @settings(
        max_examples=runs,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        print_blob=False,
    )
    @given(st.tuples(*[courses(kept, arrivals)] * min(runs, _AT_ONCE)))
    def try_courses(chosen: tuple[Course, ...]) -> None:
        prover.try_all(chosen)

    try:
        prover.check_determinism(arrivals)
        hypothesis.seed(seed)(try_courses)()
    except MillstreamError as error:
        error.__notes__ = []
        raise error from None
    finally:
        prover.close()
    tables = tuple(table.name for table in kept.tables)
    left_out = tuple(serve.name for serve in app.graph.serves if serve.name not in tables)
    done = len(prover.outcomes)
    seconds = time.monotonic() - began
    records = f"{len(arrivals)} records"
    return Proof(app.name, done, records, prover.happened, tables, left_out, seconds, seed)


class _Prover:
    """Plays courses concurrently, and keeps their outcomes."""

    def __init__(
        self,
        app: App,
        arrivals: Sequence[Arrival],
        spark: SparkSession,
        runs: int,
        on_run: Callable[[int], None],
    ) -> None:
        self._app, self._spark, self._runs, self._on_run = app, spark, runs, on_run
        self._now, self._has_failed = begin(arrivals), False
        self._place = Path(tempfile.mkdtemp(prefix="millstream-proof-"))
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self.outcomes: dict[str, MillstreamError | None] = {}
        self.happened: Counter[str] = Counter()

    def try_all(self, chosen: Sequence[Course]) -> None:
        """Play the courses that are new; raise the error of the first that fails."""
        if len(self.outcomes) >= self._runs and not self._has_failed:
            return
        new = {repr(course): course for course in chosen if repr(course) not in self.outcomes}
        for key, outcome in zip(new, self._pool.map(self._try, new.values()), strict=True):
            self.outcomes[key] = outcome
        self._on_run(len(self.outcomes))
        for course in chosen:
            if error := self.outcomes[repr(course)]:
                self._has_failed = True
                raise error

    def check_determinism(self, arrivals: Sequence[Arrival]) -> None:
        """Send all records at once; every function must return the same for them twice."""
        error = self._undetermined(arrivals)
        # Leave out halves, then quarters, and so on, as long as the others show the fault too.
        size = len(arrivals) if error else 0
        while size := size // 2:
            for start in reversed(range(0, len(arrivals), size)):
                fewer = (*arrivals[:start], *arrivals[start + size :])
                if fewer and (shorter := self._undetermined(fewer)):
                    arrivals, error = fewer, shorter
        if error:
            raise error

    def close(self) -> None:
        """Remove what the runs left behind."""
        self._pool.shutdown()
        shutil.rmtree(self._place, ignore_errors=True)

    def _undetermined(self, arrivals: Sequence[Arrival]) -> NotDeterministicError | None:
        with self._script() as script:
            CourseStep(tuple(arrivals)).play(script)
            try:
                script.assert_deterministic()
            except NotDeterministicError as error:
                return error
        return None

    @contextmanager
    def _script(self) -> Iterator[Script]:
        with (
            tempfile.TemporaryDirectory(dir=self._place, ignore_cleanup_errors=True) as place,
            Script(self._app, Home.at(place), self._spark, now=self._now, serves=False) as script,
        ):
            yield script

    def _try(self, course: Course) -> MillstreamError | None:
        try:
            with self._script() as script:
                course.play(script)
        except MillstreamError as error:
            return error
        self.happened.update(script.transcript.happened)
        return None

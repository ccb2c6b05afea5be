"""An app, its home, its input and its drivers: where faults happen."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.chaos.commit import latest_version, read_commit
from tests.chaos.driver import Driver, tracer

from millstream.crash import VARIABLE
from millstream.lake.home import Home
from millstream.loading import load
from millstream.plan import plan_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.chaos.fault import AtCall
    from tests.chaos.feed import Feeder
    from tests.chaos.process import Process

PATIENCE_S = 150.0
"""How long something that must come is waited for."""

_LOOK_EVERY_S = 0.1


class Scene:
    """One home of an app that is fed, and the drivers that run there one after another."""

    def __init__(self, app: str, feeder: Feeder, place: Path) -> None:
        self.home, self.feeder = Home.at(place / "home"), feeder
        self._file, self._place = os.path.abspath(app), place
        self._logs = place / "drivers"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._drivers: list[Driver] = []
        self._fed_at = 0
        with _environment(feeder.environment):
            self.app = load(self._file)
        self.app.raise_faults()
        self.queries = plan_stored(self.app.graph)

    @property
    def batches(self) -> int:
        """How many batches all tables have."""
        tables = (self.home.table(name) for name in self.home.tables)
        latest = ((table, latest_version(table)) for table in tables)
        return sum(read_commit(t, version).facts.batch + 1 for t, version in latest if version > 0)

    @property
    def trace(self) -> Path:
        """Where the calls of a traced driver are written down."""
        return self._logs / "trace"

    @contextmanager
    def driver(
        self,
        *options: str,
        crash_at: str | None = None,
        call: AtCall | None = None,
        prefix: tuple[str, ...] = (),
    ) -> Iterator[Driver]:
        """Run a driver; if it lives in the end, it is killed with all that it has started."""
        self.trace.unlink(missing_ok=True)
        if call is not None:
            prefix = tracer(call.call, call.nth, self.trace)
        run = (
            sys.executable,
            "-m",
            "millstream.cli",
            "run",
            self._file,
            "--no-console",
            "--home",
            self.home.path,
        )
        driver = Driver(
            [*prefix, *map(str, run), *options],
            log=self._logs / f"{len(self._drivers):04d}.log",
            environment={**self.feeder.environment, **({VARIABLE: crash_at} if crash_at else {})},
            traced=bool(prefix),
        )
        self._drivers.append(driver)
        try:
            yield driver
        finally:
            if driver.ended is None:
                driver.kill_all()

    def wait(self, true: Callable[[], bool], *, within_s: float = PATIENCE_S) -> bool:
        """Wait for something, and feed the app whenever it has taken something in."""
        deadline = time.monotonic() + within_s
        while not true():
            if time.monotonic() > deadline:
                return False
            self._feed_if_hungry()
            for driver in self._drivers[-2:]:
                # Whoever is killed by itself must have been seen with all that it has started.
                _ = driver.family
            time.sleep(min(_LOOK_EVERY_S, max(deadline - time.monotonic(), 0)))
        return True

    def end_orphans(self, *, after_s: float = 0) -> tuple[Process, ...]:
        """Kill whatever has outlived its driver for so long; say what that was."""
        gone = [driver for driver in self._drivers if driver.ended is not None]
        outlived = [p for driver in gone if driver.gone_s >= after_s for p in driver.orphans]
        for process in outlived:
            process.send(signal.SIGKILL)
        return tuple(outlived)

    def _feed_if_hungry(self) -> None:
        sources = [self.home.table(source.name) for source in self.app.graph.sources]
        landed = sum(latest_version(table) for table in sources)
        if landed != self._fed_at:
            self._fed_at = landed
            self.feeder.feed()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

"""A program run by `millstream.dstream`, batch by batch on a clock that is moved by hand."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tests.dstream.program import START, Collect

import millstream.dstream as api
from millstream.crash import PROGRAM_POINTS, armed
from millstream.lake.home import Home

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark import SparkContext
    from tests.dstream.program import Body, Outputs, Queue

POINTS = tuple(PROGRAM_POINTS)
"""Where the driver can die in a batch."""


class KilledError(Exception):
    """The driver dies here."""


def run_ours(  # noqa: PLR0913 - a program, and how it runs
    sc: SparkContext,
    body: Body,
    batches: Sequence[Queue],
    interval: float = 1.0,
    *,
    count: int | None = None,
    folder: Path | None = None,
    crashes: Iterable[tuple[int, str]] = (),
) -> Outputs:
    """Run a program for some batches and return what it gave.

    Args:
        sc: Runs the batches.
        body: The program.
        batches: What arrives on each of its streams.
        interval: Of its batches, in seconds.
        count: How many batches run; by default as many as the longest queue has.
        folder: An empty folder for the run.
        crashes: Numbers of batches, each with one of `POINTS`: when it is reached
            in that batch (or in a later one, if that one does not reach it) the driver
            dies, and the program starts again in its home.
    """
    with TemporaryDirectory() as scratch:
        own = folder or Path(scratch) / "files"
        own.mkdir(exist_ok=True)
        collect = Collect(api, own, interval)
        run = _Run(sc, body, batches, interval, collect, Path(scratch) / "home")
        last = count or max(map(len, batches))
        for number, point in sorted(crashes):
            run.until_killed(number, point, last)
        run.until(last)
        return collect.outputs


class _Run:
    """A program that is started anew after each crash."""

    def __init__(
        self,
        sc: SparkContext,
        body: Body,
        batches: Sequence[Queue],
        interval: float,
        collect: Collect,
        home: Path,
    ) -> None:
        self._sc, self._body, self._batches = sc, body, batches
        self._interval, self._collect, self._home = interval, collect, home
        self._done, self._is_killed = 0, False

    def until_killed(self, number: int, point: str, last: int) -> None:
        """Run the batches before one, kill the driver at a point of it or later."""
        self.until(number - 1)

        def kill(reached: str, _: str, __: int) -> None:
            if reached == point:
                raise KilledError

        with armed(Home.at(self._home).path, kill):
            try:
                self.until(last)
            except (KilledError, Exception) as error:
                if not _is_killed(error):
                    raise
                self._is_killed = True

    def until(self, number: int) -> None:
        """Run in a new context until a batch is done."""
        if self._done >= number and not self._is_killed:
            return
        self._is_killed = False
        ssc: Any = api.StreamingContext(self._sc, self._interval)  # type: ignore[arg-type]
        self._body(ssc, tuple(self._stream(ssc, queue) for queue in self._batches), self._collect)
        ssc.checkpoint(str(self._home))
        now = START + self._done * self._interval
        with api.Steps(ssc, now) as steps:
            steps.finish()
            while self._done < number:
                self._collect.run_before(self._done + 1)
                # A batch that is planned is planned for ever, whatever becomes of the driver.
                self._done += 1
                steps.run()

    def _stream(self, ssc: Any, queue: Queue) -> Any:
        rdds = [self._sc.parallelize(list(batch)) for batch in queue]
        return ssc.queueStream(rdds or [self._sc.parallelize([])])


def _is_killed(error: BaseException | None) -> bool:
    return isinstance(error, KilledError) or (error is not None and _is_killed(error.__cause__))

"""Batches on a clock that moves only when a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from millstream.dstream.context import StreamingContext

_BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Steps:
    """Run a program batch by batch, in this thread: a window of minutes takes milliseconds.

    ::

        with Steps(ssc) as steps:
            steps.run(4)
    """

    def __init__(self, ssc: StreamingContext, now: datetime | float = _BEGIN) -> None:
        """Start the program.

        Args:
            ssc: The context, not started.
            now: What time it is, as a time or in seconds of the Unix epoch.
        """
        seconds = now.timestamp() if isinstance(now, datetime) else now
        self._ssc, self._now_ms = ssc, round(seconds * 1000)
        self._run = ssc._open_alone(self._now_ms)
        self._run.catch_up(self._now_ms)

    def run(self, batches: int = 1) -> None:
        """Run what was planned and not done before, then let so many intervals pass.

        Raises:
            MillstreamError: A batch failed.
        """
        self.finish()
        for _ in range(batches):
            self._now_ms = self._run.next_ms(self._now_ms)
            self._run.settle()
            self._run.plan(self._now_ms)
            self.finish()

    def finish(self) -> None:
        """Run what is planned and not done."""
        while self._run.journal.waiting:
            self._run.run_next()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ssc.stop(stopSparkContext=False)

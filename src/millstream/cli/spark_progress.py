"""A line that says how far Spark is with work that takes long, while a command waits for it."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from millstream.cli.display import how_far
from millstream.spark.jobs import long_jobs, name_jobs
from millstream.views.progress import UnderWayView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from millstream.spark.jobs import LongJob

_EVERY_S = 0.5
_CLEAR_LINE = "\r\x1b[K"


@contextmanager
def showing_progress(spark: SparkSession, what: str) -> Iterator[None]:
    """Say in a terminal how far the jobs are that this thread starts, once they take long."""
    if not sys.stderr.isatty():
        yield
        return
    name_jobs(spark, what)
    with showing(what, lambda: long_jobs(spark), _write):
        yield


@contextmanager
def showing(
    what: str,
    look: Callable[[], Sequence[LongJob]],
    write: Callable[[str], None],
    *,
    every_s: float = _EVERY_S,
) -> Iterator[None]:
    """Look at jobs now and then, and write a line of those that run; none is left in the end."""
    is_over = threading.Event()

    def work() -> None:
        is_shown = False
        while not is_over.wait(every_s):
            # Spark may be ending.
            with suppress(Py4JError, OSError):
                under_way = UnderWayView.of(look())
                if under_way is not None:
                    line = f"  {what}: {', '.join(how_far(under_way))}"
                    write(f"{_CLEAR_LINE}{line}")
                elif is_shown:
                    write(_CLEAR_LINE)
                is_shown = under_way is not None
        if is_shown:
            write(_CLEAR_LINE)

    thread = threading.Thread(target=work, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()

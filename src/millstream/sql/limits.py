"""How much a query may use, and how one that uses more is stopped."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from millstream.errors import fault
from millstream.model.duration import to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.errors import MillstreamError

T = TypeVar("T")

_UNITS_MB = {"mb": 1, "gb": 1 << 10, "tb": 1 << 20}
_BESIDES_MB = 512
"""What Python may hold beside DuckDB: rows on their way out, and the logs of tables."""

LEAST_OF_SPARK_MB = 512
"""With less memory, Spark does not start."""

_STEP_S = 0.1
_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one query may use; a query that needs more is stopped with an error."""

    time: timedelta = timedelta(minutes=5)
    rows: int = 100_000
    """Of an answer that is held in memory, not of one that is written to a file."""
    memory_mb: int = 2048
    disk_mb: int = 8192
    """For what does not fit into memory: temporary files, removed at the end."""


def over_limit(limit: str, option: str) -> MillstreamError:
    """Return the error for a limit that a query has reached."""
    return fault("SQL_OVER_LIMIT", limit=limit, option=option)


def over_memory(memory_mb: int) -> MillstreamError:
    """Return the error for a query that needs more memory than it may use."""
    return over_limit(f"{size_text(memory_mb)} of memory", "--memory")


def parse_size(text: str) -> int:
    """Read a size, in MB.

    >>> parse_size("2 GB"), parse_size("500mb")
    (2048, 500)

    Raises:
        ValueError: The text is not a size of at least 1 MB.
    """
    size = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([mgt]b)\s*", text.lower())
    if size is None or (found := int(float(size[1]) * _UNITS_MB[size[2]])) < 1:
        raise ValueError(text)
    return found


def size_text(size_mb: int) -> str:
    """Write a size.

    >>> size_text(2048), size_text(500)
    ('2 GB', '500 MB')
    """
    return f"{size_mb >> 10} GB" if size_mb % 1024 == 0 else f"{size_mb} MB"


def run_interruptibly(work: Callable[[], T], *, cancel: Callable[[], None], limits: Limits) -> T:
    """Run work in a thread, and cancel it at a signal or when its time is over.

    Python handles signals between two steps of its main thread. A database that worked there
    would return to Python, and so to Ctrl-C, only with its answer.

    Raises:
        SQL_OVER_LIMIT: It takes too long.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:
            answer.set_exception(error)

    is_done = False
    try:
        threading.Thread(target=run, daemon=True).start()
        is_done = _is_done(answer, limits.time.total_seconds())
    finally:
        if not is_done:
            _end(answer, cancel)
    if not is_done:
        raise over_limit(to_text(limits.time), "--timeout")
    return answer.result()


def _end(answer: Future[T], cancel: Callable[[], None]) -> None:
    """Cancel until it ends: a query that is still being translated has nothing to cancel yet."""
    for _ in range(_TRIES):
        cancel()
        if _is_done(answer, _STEP_S):
            return


def _is_done(answer: Future[T], within_s: float) -> bool:
    """Wait in steps: a signal that another thread receives does not wake the main thread."""
    end = time.monotonic() + within_s
    while not answer.done() and (left := end - time.monotonic()) > 0:
        wait([answer], min(left, _STEP_S))
    return answer.done()


@contextlib.contextmanager
def limited_process(memory_mb: int) -> Iterator[None]:
    """Refuse this process more memory than a query may use, and some for Python.

    DuckDB counts the memory of its tables, sorts and joins, but not of each single value.

    Raises:
        SQL_OVER_LIMIT: Python needs more.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        yield
        return
    import resource

    [used_kb] = re.findall(r"VmData:\s+(\d+) kB", status.read_text())
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = (int(used_kb) << 10) + ((memory_mb + _BESIDES_MB) << 20)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    except MemoryError as error:
        raise over_memory(memory_mb) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

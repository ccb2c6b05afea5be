"""Where Spark's Python workers come from: a process that has the libraries and is forked.

A worker that starts on its own takes most of a second to import them; one that is forked, none.
What a worker allocates is limited, and one that has become large is replaced after its task.
"""

import contextlib
import gc
import os
import resource
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import worker
from pyspark.daemon import manager
from pyspark.serializers import SpecialLengths

from millstream.spark.arguments import note_arguments

__all__ = ["msgspec", "pa", "pc", "pd", "pq"]

_WORKER: Any = worker
_report, _read_int = _WORKER.handle_worker_exception, _WORKER.read_int
_LIMIT = "PYSPARK_EXECUTOR_MEMORY_MB"
"""Where Spark says how much one worker may take, of `spark.executor.pyspark.memory`."""
_LARGE = 0.5
"""From which share of its limit on a worker is replaced after its task."""


def _report_with_arguments(error: BaseException, *to: Any) -> None:
    # If a user's repr() raises, the error itself is still reported.
    with contextlib.suppress(Exception):
        note_arguments(error)
    _report(error, *to)


def _limit_memory(limit_mb: int) -> None:
    """Limit what a worker allocates: an allocation beyond it raises MemoryError.

    Spark would limit its addresses, of which libraries reserve a gigabyte that they never use. A
    lower limit that the machine sets remains.
    """
    if limit_mb > 0:
        limit, hard = limit_mb << 20, resource.getrlimit(resource.RLIMIT_DATA)[1]
        if hard == resource.RLIM_INFINITY or limit < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _read_int_or_end(stream: Any) -> int:
    """Read a number; at the end of a task, have Spark close a worker that has become large."""
    number = int(_read_int(stream))
    if number == SpecialLengths.END_OF_STREAM and _is_large():
        return int(SpecialLengths.END_OF_DATA_SECTION)
    return number


def _is_large() -> bool:
    limit_mb = int(os.environ.get(_LIMIT, "-1"))
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return False
    return 0 < limit_mb << 20 < pages * resource.getpagesize() / _LARGE


if __name__ == "__main__":
    # Rows of a batch are many and hold no cycles: a collection at every 700th object took 8 to
    # 26 % of the time of functions of a key. Imported objects are never collected again.
    gc.freeze()
    gc.set_threshold(100_000)
    _WORKER.handle_worker_exception = _report_with_arguments
    _WORKER.setup_memory_limits = _limit_memory
    _WORKER.read_int = _read_int_or_end
    manager()

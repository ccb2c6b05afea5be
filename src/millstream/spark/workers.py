"""Where Spark's Python workers come from: a process that has the libraries and is forked.

A worker that starts on its own takes most of a second to import them; one that is forked, none.
"""

import contextlib
import gc
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import worker
from pyspark.daemon import manager

from millstream.spark.arguments import note_arguments

__all__ = ["msgspec", "pa", "pc", "pd", "pq"]

_WORKER: Any = worker
_report = _WORKER.handle_worker_exception


def _report_with_arguments(error: BaseException, *to: Any) -> None:
    # If a user's repr() raises, the error itself is still reported.
    with contextlib.suppress(Exception):
        note_arguments(error)
    _report(error, *to)


if __name__ == "__main__":
    # Rows of a batch are many and hold no cycles: a collection at every 700th object took 8 to
    # 26 % of the time of functions of a key. Imported objects are never collected again.
    gc.freeze()
    gc.set_threshold(100_000)
    _WORKER.handle_worker_exception = _report_with_arguments
    manager()

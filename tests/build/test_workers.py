"""What stops a query, as Spark really reports it, in words of our own."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, functions as F
from tests.apps import READING, reading, rows, run, timed

import millstream as ms
from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.observe import Event

TASK_TRIES = 4
IN_600_MB = """
import os
from pyspark.errors import PythonException
from pyspark.sql import functions as F
from millstream.spark.session import open_session, stop_session

def filled(megabytes):
    kept.append(b"x" * (megabytes << 20))
    return os.getpid()

kept = []
spark = open_session("small", master="local[1]", conf={"spark.executor.pyspark.memory": "600m"})
pid = F.udf(filled, "bigint")
for megabytes in (1, 1, 400, 1, 700):
    try:
        print(spark.range(1).select(pid(F.lit(megabytes))).first()[0])
    except PythonException as error:
        print("MemoryError" if "MemoryError" in str(error) else error)
stop_session(spark)
"""

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def be_killed(*_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def crash(*_: Any) -> Any:
    ctypes.string_at(0)


def allocate(*_: Any) -> Any:
    # More than all workers of this machine may take together.
    return len(bytearray(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))


def lack_a_module(*_: Any) -> Any:
    import module_of_nobody  # type: ignore[import-not-found]

    return module_of_nobody


def in_udf(rows: DataFrame, function: Callable[..., Any]) -> DataFrame:
    return rows.select(F.udf(function, "bigint")("id").alias("n"))


def in_columns(rows: DataFrame, function: Callable[..., Any]) -> DataFrame:
    return ms.add_columns(rows, function, "n BIGINT")


def in_tolerant_columns(rows: DataFrame, function: Callable[..., Any]) -> DataFrame:
    return ms.add_columns(rows, function, "n BIGINT", on_error="quarantine")


def in_state(rows: DataFrame, function: Callable[..., Any]) -> DataFrame:
    @ms.stateful(key="id", state="n BIGINT", emits="id BIGINT", order="arrival")
    def kept(id: int, rows: Any, state: Any, timer: ms.Timer) -> Iterator[tuple[int]]:  # noqa: A002
        yield (function(),)

    return kept(rows)


def stopped(
    way: Callable[..., DataFrame], function: Callable[..., Any], home: Path
) -> MillstreamError:
    """Run a query with a function; give what it stopped of."""
    source = ms.Memory(READING)
    source.add(reading(1, "12:00:00"))
    app = timed(source)

    @app.table
    def scored(readings: DataFrame) -> DataFrame:
        return way(readings, function)

    with pytest.raises(MillstreamError) as caught:
        run(app, home)
    assert app.graph.tables[0].at.file.endswith("test_workers.py")
    return caught.value


@pytest.mark.parametrize("way", [in_udf, in_columns, in_state])
def test_a_worker_that_is_killed_is_reported_as_that_and_may_be_tried_again(
    way: Callable[..., DataFrame], spark: SparkSession, tmp_path: Path
) -> None:
    error = stopped(way, be_killed, tmp_path)

    assert (error.code, error.transient) == ("PYTHON_DIED", True)
    assert error.what.startswith("query 'scored': a Python worker was killed;")
    assert error.at is not None


def test_a_worker_that_crashes_is_reported_with_what_it_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    error = stopped(in_udf, crash, tmp_path)

    assert error.code == "PYTHON_DIED"
    assert "a Python worker crashed: Segmentation fault;" in error.what


@pytest.mark.parametrize("way", [in_udf, in_tolerant_columns, in_state])
def test_a_worker_that_runs_out_of_memory_fails_its_batch_alone(
    way: Callable[..., DataFrame], spark: SparkSession, tmp_path: Path
) -> None:
    error = stopped(way, allocate, tmp_path)

    assert (error.code, error.transient) == ("PYTHON_MEMORY", True)
    assert "a Python worker ran out of memory (MemoryError)" in error.what
    assert error.at is not None


def test_the_app_goes_on_after_a_worker_that_ran_out_of_memory(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, tried = ms.Memory(READING), str(tmp_path / "tried")
    source.add(reading(1, "12:00:00"))
    app = timed(source)

    def allocate_at_first(*numbers: Any) -> Any:
        with open(tried, "a+") as file:
            file.seek(0)
            times = len(file.read())
            file.write("x")
        # Spark tries each task four times.
        return allocate() if times < TASK_TRIES else numbers[0]

    @app.table
    def scored(readings: DataFrame) -> DataFrame:
        return in_udf(readings, allocate_at_first)

    app.sql("clean", "SELECT id FROM readings")
    events: list[Event] = []
    running = app.open({"home": tmp_path / "home", "once": True}, on_event=events.append)
    running.serve()
    running.raise_if_stopped_for_good()

    [failed] = [event.error for event in events if event.kind == "restarting"]
    assert failed is not None
    assert failed.code == "PYTHON_MEMORY"
    assert rows(tmp_path / "home", "scored") == rows(tmp_path / "home", "clean") == [(1,)]


def test_a_worker_that_has_become_large_is_replaced_after_its_task() -> None:
    program = [sys.executable, "-c", IN_600_MB]
    answer = subprocess.run(program, capture_output=True, text=True, check=True, timeout=120)

    small, same, large, later, raised = answer.stdout.split()
    assert small == same == large != later
    assert raised == "MemoryError"


@pytest.mark.parametrize("way", [in_udf, in_tolerant_columns, in_state])
def test_a_module_that_workers_lack_is_named_and_not_tried_again(
    way: Callable[..., DataFrame], spark: SparkSession, tmp_path: Path
) -> None:
    error = stopped(way, lack_a_module, tmp_path)

    assert (error.code, error.transient) == ("PYTHON_MODULE_MISSING", False)
    assert error.what == "query 'scored': the Python workers have no module 'module_of_nobody'"
    assert "PYSPARK_PYTHON" in error.fix


def test_a_module_that_workers_lack_is_named_when_they_receive_the_function(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_of_driver.py").write_text("def same(number): return number\n")
    monkeypatch.syspath_prepend(tmp_path)

    error = stopped(in_udf, import_module("module_of_driver").same, tmp_path / "home")

    assert error.code == "PYTHON_MODULE_MISSING"
    assert "no module 'module_of_driver'" in error.what

"""What stops a query, as Spark really reports it, in words of our own."""

from __future__ import annotations

import ctypes
import os
import signal
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, functions as F
from tests.apps import READING, reading, run, timed

import millstream as ms
from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


pytestmark = [pytest.mark.spark, pytest.mark.slow]


def be_killed(*_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def crash(*_: Any) -> Any:
    ctypes.string_at(0)


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

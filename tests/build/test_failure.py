"""What stopped a query, as an error that a person can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from millstream.build.failure import explain
from millstream.errors import Location
from millstream.lake.home import Home

if TYPE_CHECKING:
    from pathlib import Path


def test_python_that_starts_too_late_is_an_outage_that_is_tried_again(tmp_path: Path) -> None:
    home, late = Home.at(tmp_path), "java.net.SocketTimeoutException: Accept timed out"
    stopped = PySparkException(f"Python worker failed to connect back. {late}")

    error = explain(stopped, query="visits", at=Location("app.py", 6), home=home)

    assert error.code == "PYTHON_LATE"
    assert error.transient
    # The log is that of the JVM that runs in this process, if one does.
    assert "spark.log" in error.fix

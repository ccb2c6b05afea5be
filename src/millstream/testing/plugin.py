"""The pytest plugin: fixtures for tests of an app, on without configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.app import App
    from millstream.testing.script import Script


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark of tests that need Spark."""
    config.addinivalue_line("markers", "spark: needs a JVM; set by the fixtures spark and stream")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need Spark, so that `-m "not spark"` leaves them out."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests, with the settings that apps run with, except slow ones."""
    from millstream.spark.session import open_session, stop_session
    from millstream.testing.quick_settings import QUICK

    logs = tmp_path_factory.mktemp("logs")
    session = open_session("tests", master="local[2]", conf=QUICK, log_dir=logs)
    yield session
    stop_session(session)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A fresh folder to deploy an app in."""
    return tmp_path / "home"


@pytest.fixture
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Script]:
    """Return the function that runs an app by a script; use it in a `with` statement."""
    from millstream.lake.home import Home
    from millstream.testing.script import NOON, Script

    def make(app: App, *, home: Path | None = None, now: datetime = NOON) -> Script:
        place = home or tmp_path_factory.mktemp("home")
        return Script(app, Home.at(place), spark, now=now)

    return make

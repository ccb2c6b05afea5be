"""What all tests share besides the kit's own fixtures: one server of each kind."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from millstream.testing.kafka import Broker, Topics
from millstream.testing.postgres import PostgresServer
from millstream.testing.redis import RedisServer
from millstream.testing.server import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


# How long an example takes says nothing on a machine that others share; and what was green stays
# so until something changes: proofs of their own, each with a seed, look further.
settings.register_profile(
    "shared machine",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("shared machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-services",
        action="store_true",
        help="leave out the tests that need Postgres, Redis or a browser; without it, they fail",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a broker, leave out what is not wanted, and begin with the slow files.

    Of two processes side by side, none then has to wait long for the other.
    """
    for item in items:
        if "broker" in getattr(item, "fixturenames", ()):
            item.add_marker("kafka")
        if config.getoption("--no-services") and item.get_closest_marker("services"):
            item.add_marker(pytest.mark.skip(reason="--no-services"))
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port that nobody listens on, and that nobody else is given meanwhile."""
    with socket.socket() as held:
        held.bind((HOST, 0))
        yield held.getsockname()[1]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def topics(spark: SparkSession, broker: Broker) -> Topics:
    return Topics(spark, broker.servers)

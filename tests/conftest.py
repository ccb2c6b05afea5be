"""What all tests share besides the kit's own fixtures: their order, and one Kafka broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.testing.kafka import Broker, Topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a broker, and begin with the slow files.

    Of two processes side by side, none then has to wait long for the other.
    """
    for item in items:
        if "broker" in getattr(item, "fixturenames", ()):
            item.add_marker("kafka")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def topics(spark: SparkSession, broker: Broker) -> Topics:
    return Topics(spark, broker.servers)

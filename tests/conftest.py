"""What all tests share besides the kit's own fixtures: one Kafka broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.testing.kafka import Broker, Topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def topics(spark: SparkSession, broker: Broker) -> Topics:
    return Topics(spark, broker.servers)

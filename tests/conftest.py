"""What all tests share: one Spark session, one Kafka broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.spark.session import open_session, stop_session
from millstream.testing.kafka import Broker, Topics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = open_session("tests", master="local[2]", log_dir=tmp_path_factory.mktemp("logs"))
    yield session
    stop_session(session)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def topics(spark: SparkSession, broker: Broker) -> Topics:
    return Topics(spark, broker.servers)

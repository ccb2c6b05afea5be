"""A store of each kind, empty for every test."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from tests.systems.stores import OPENED, make_topic

from millstream.systems.delta.settings import DeltaPath
from millstream.systems.files.settings import FileSink
from millstream.systems.kafka.settings import Kafka
from millstream.systems.postgres.settings import Postgres
from millstream.systems.redis.settings import Redis
from millstream.systems.sqlite.settings import SQLite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


_NUMBERS = itertools.count()
SERVED = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgres", id="postgres", marks=pytest.mark.services),
    pytest.param("redis", id="redis", marks=pytest.mark.services),
]
BY_KEY = [
    *SERVED,
    pytest.param("delta", id="delta"),
    pytest.param("kafka", id="kafka", marks=pytest.mark.kafka),
]
"""Stores whose rows change by key."""
TO_PYTHON = [
    *SERVED,
    pytest.param("kafka", id="kafka", marks=pytest.mark.kafka),
    pytest.param("files", id="files"),
]
"""Stores whose rows are taken through Python."""
EVERY = [*BY_KEY, pytest.param("files", id="files")]


@pytest.fixture(params=SERVED)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    """Give the function that makes a sink; each test has tables of its own."""
    number, kind = next(_NUMBERS), request.param

    def made(*, name: str = "items", **options: Any) -> Any:
        table = f"{name}_{number}"
        match kind:
            case "sqlite":
                return SQLite(str(tmp_path / f"{name}.db"), table=table, **options)
            case "delta":
                return DeltaPath(str(tmp_path / name), **options)
            case "files":
                return FileSink(str(tmp_path / name), "json")
        server = request.getfixturevalue("broker" if kind == "kafka" else kind)
        match kind:
            case "kafka":
                make_topic(server.servers, table)
                return Kafka(table, server.servers, **options).in_batches()
            case "postgres":
                return Postgres(server.dsn, table=table, **options)
        return Redis(server.url, prefix=table, **options)

    return made

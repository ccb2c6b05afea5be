"""A few drivers killed on each of the six stores; `make stores` kills many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.systems.matrix import tried
from tests.systems.stores import make_topic

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.testing.kafka import Broker


@pytest.mark.parametrize("kind", ["delta", "files", "sqlite"])
def test_drivers_that_are_killed_or_overtaken_leave_every_row_once(
    kind: str, tmp_path: Path
) -> None:
    found = tried(kind, str(tmp_path / "place"), tmp_path, ["settle", "zombie"], seed=1)

    assert found.is_exact, found


@pytest.mark.services
@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_drivers_of_a_server_that_are_killed_or_overtaken_leave_every_row_once(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server = request.getfixturevalue(kind)
    place = server.dsn if kind == "postgres" else server.url

    found = tried(kind, place, tmp_path, ["settle", "zombie"], seed=1)

    assert found.is_exact, found


@pytest.mark.kafka
def test_drivers_of_a_topic_that_are_killed_leave_every_record_once(
    broker: Broker, tmp_path: Path
) -> None:
    make_topic(broker.servers, "killed-drivers")

    found = tried(
        "kafka", f"{broker.servers}/killed-drivers", tmp_path, ["settle", "written"], seed=1
    )

    assert found.is_exact, found

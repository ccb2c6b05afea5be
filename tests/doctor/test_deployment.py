from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from millstream.checkpoint.checksum import write_sealed
from millstream.doctor import look_at_home
from millstream.lake.home import Home
from millstream.lake.lease import Lease

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path / "shop")
    home.prepare("shop", sources=["orders"])
    return home


def test_a_home_in_which_nothing_has_run_is_passed_over(tmp_path: Path) -> None:
    assert list(look_at_home(Home.at(tmp_path / "nothing"), "shop")) == []


def test_a_sound_home_that_nobody_holds_is_well(home: Home) -> None:
    with Lease.acquire(home):
        pass

    found = list(look_at_home(home, "shop"))

    assert [(d.subject, d.state, d.what) for d in found] == [
        ("driver", "ok", "none runs"),
        ("checkpoints", "ok", "0 sound"),
    ]


def test_the_driver_that_holds_the_home_is_named(home: Home) -> None:
    with Lease.acquire(home):
        held, _ = look_at_home(home, "shop")

    assert held.state == "warn"
    assert f"is held by pid {os.getpid()} on " in held.what


def test_damaged_checkpoints_are_named_with_the_remedy(home: Home) -> None:
    checkpoint = home.checkpoint("paid")
    write_sealed(checkpoint / "metadata", '{"id": "q"}')
    (checkpoint / "offsets").mkdir()
    (checkpoint / "offsets" / "0").write_bytes(b"")

    _, damaged = look_at_home(home, "shop")

    assert (damaged.state, damaged.what) == ("bad", "damaged: paid")
    assert "millstream checkpoint inspect" in damaged.fix


def test_the_home_of_another_app_is_reported(home: Home) -> None:
    [found] = look_at_home(home, "bank")

    assert (found.subject, found.state) == ("deployed", "bad")
    assert "belongs to app 'shop'" in found.what

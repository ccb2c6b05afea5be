from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.faults import raises

from millstream.lake.home import Home
from millstream.lake.lease import Lease, holder_of

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys, time
from millstream.lake.home import Home
from millstream.lake.lease import Lease
lease = Lease.acquire(Home.at(sys.argv[1]))
print(lease.epoch, flush=True)
time.sleep(60)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path / "home")
    home.prepare("shop", sources=[])
    return home


def test_a_second_driver_is_refused_with_the_holders_pid(home: Home) -> None:
    with Lease.acquire(home), raises("HOME_LOCKED") as caught:
        Lease.acquire(home)

    assert caught.value.facts["pid"] == os.getpid()
    assert str(caught.value).startswith(
        f"[HOME_LOCKED] home {str(home.path)!r} is held by pid {os.getpid()} "
        f"on {socket.gethostname()} since "
    )


def test_every_driver_has_a_greater_epoch_than_all_before(home: Home) -> None:
    epochs = []
    for _ in range(3):
        with Lease.acquire(home) as lease:
            epochs.append(lease.epoch)

    assert epochs == [1, 2, 3]


def test_a_killed_driver_leaves_the_home_free(home: Home) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "1\n"
        with raises("HOME_LOCKED"):
            Lease.acquire(home)
        holder.kill()
        holder.wait()

        with Lease.acquire(home) as lease:
            assert lease.epoch == 2


def test_a_takeover_leaves_the_holder_with_a_stale_epoch(home: Home) -> None:
    with Lease.acquire(home) as first, Lease.acquire(home, takeover=True) as second:
        assert (first.epoch, second.epoch) == (1, 2)
        assert first.latest_epoch > first.epoch
        assert second.latest_epoch == second.epoch


def test_a_driver_that_is_overtaken_finds_out_from_the_next_epoch_on(home: Home) -> None:
    with Lease.acquire(home) as lease:
        lease.hold()
        with Lease.acquire(home, takeover=True), raises("OVERTAKEN"):
            lease.hold()


def test_two_looks_at_a_home_at_the_same_time_find_no_driver(home: Home) -> None:
    Lease.acquire(home).release()

    with (home.lease / "00000001").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert holder_of(home) is None


def test_a_home_that_is_deleted_is_named(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    home.prepare("shop", sources=[])

    with Lease.acquire(home) as lease:
        shutil.rmtree(home.path)

        with raises("HOME_GONE", match="is not there any more"):
            lease.hold()

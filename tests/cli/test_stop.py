from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.lake.lease import Lease

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Outcome

    from millstream.lake.home import Home

DRIVER = """
import signal, sys, time
from millstream.lake.home import Home
from millstream.lake.lease import Lease
stops = sys.argv[2] == "stops"
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0) if stops else None)
with Lease.acquire(Home.at(sys.argv[1])):
    print("runs", flush=True)
    while True:
        time.sleep(0.01)
"""


@pytest.fixture
def driver(home: Home) -> Iterator[Callable[[str], int]]:
    """Start a process that holds the home, and give its pid."""
    started: list[subprocess.Popen[str]] = []

    def start(manner: str) -> int:
        command = [sys.executable, "-c", DRIVER, str(home.path), manner]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout is not None
        assert started[-1].stdout.readline() == "runs\n"
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_driver_is_asked_to_stop_and_waited_for(
    millstream: Callable[..., Outcome], home: Home, driver: Callable[[str], int]
) -> None:
    pid = driver("stops")

    outcome = millstream("stop", "--home", str(home.path))

    assert (outcome.code, outcome.out) == (0, f"  ✓ pid {pid} has stopped: {home.path}\n")
    Lease.acquire(home).release()


def test_a_driver_that_is_stopped_while_it_starts_leaves_with_0(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import signal\nprint('starts', flush=True)\nsignal.pause()\n")
    command = [sys.executable, "-m", "millstream.cli", "run", "app.py", "--no-console"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as starting:
        assert starting.stdout is not None
        assert starting.stdout.readline() == "starts\n"

        starting.terminate()

        assert starting.wait(timeout=60) == 0


def test_no_driver_is_no_fault(millstream: Callable[..., Outcome], home: Home) -> None:
    outcome = millstream("stop", "--home", str(home.path))

    assert (outcome.code, outcome.out) == (0, f"  no driver runs: {home.path}\n")


@pytest.mark.parametrize("words", [[], ["--home", "nowhere"]])
def test_a_home_that_does_not_exist_has_no_driver(
    words: list[str], millstream: Callable[..., Outcome]
) -> None:
    Path("app.py").write_text('import millstream as ms\napp = ms.App("shop")\n')

    outcome = millstream("stop", "--json", *words)

    assert (outcome.code, json.loads(outcome.out)["driver"]) == (0, None)


def test_a_driver_that_does_not_stop_is_reported_with_what_can_be_done(
    millstream: Callable[..., Outcome], home: Home, driver: Callable[[str], int]
) -> None:
    pid = driver("goes on")

    outcome = millstream("stop", "--home", str(home.path), "--wait", "200 milliseconds")

    assert outcome.code == 3
    assert outcome.refusal == [
        f"[DRIVER_STILL_RUNNING] pid {pid} was asked to stop and still runs after 0.2 s",
        "  fix: it finishes its batch first: wait again with a longer --wait; if it hangs, "
        f"`kill -9 {pid}` loses nothing that is committed",
    ]


def test_a_driver_on_another_host_is_refused_by_name(
    millstream: Callable[..., Outcome], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("socket.gethostname", lambda: "far-away")
        lease = Lease.acquire(home)

    with lease:
        outcome = millstream("stop", "--home", str(home.path))

    assert outcome.code == 2
    assert outcome.refusal == [
        f"[DRIVER_ELSEWHERE] home {str(home.path)!r} is run by pid {os.getpid()} on far-away, "
        "which cannot be stopped from here",
        f"  fix: on far-away: `millstream stop --home {home.path}`, or `kill {os.getpid()}`",
    ]


def test_a_driver_of_another_user_is_refused(
    millstream: Callable[..., Outcome], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int, number: signal.Signals) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    with Lease.acquire(home):
        outcome = millstream("stop", "--home", str(home.path))

    assert outcome.code == 2
    assert outcome.err.startswith(f"[DRIVER_FOREIGN] pid {os.getpid()} belongs to another user")


def test_a_wait_that_is_no_length_of_time_is_refused(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    outcome = millstream("stop", "--home", str(home.path), "--wait", "long")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[ARGUMENT_REFUSED] --wait cannot be 'long'",
        '  fix: give a length of time such as 60s or "5 minutes"',
    ]

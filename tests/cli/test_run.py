from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.sql import query
from millstream.testing.quick_settings import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.spark, pytest.mark.slow]

APP = """\
import millstream as ms
from pyspark.sql import functions as F, types as T
from shouting import shout

app = ms.App("shop")

@app.source(event_time="at", watermark="1 minute")
def orders():
    return ms.Generator("id BIGINT, at TIMESTAMP", rate=50, event_time="at", malformed=0.2)

@F.udf(T.StringType())
def loud(number):
    return shout(number)

@app.table()
def paid(orders):
    return orders.select("id", loud("id").alias("reported"))
"""
PATIENCE_S = 120
Found = TypeVar("Found")


def wait_for(look: Callable[[], Found]) -> Found:
    until = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def is_gone(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


class Driver:
    """`millstream run` in a process of its own."""

    def __init__(self, place: Path, *options: str) -> None:
        (place / "shouting.py").write_text('def shout(number):\n    return f"{number}!"\n')
        (place / "app.py").write_text(APP)
        self._out = place / "out.txt"
        self.home = Home.at(place / ".millstream" / "shop")
        with self._out.open("w") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "millstream.cli", "run", "--no-console", *options],
                cwd=place,
                env={**os.environ, **SHORT_LIVED},
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @property
    def out(self) -> str:
        return self._out.read_text()

    def wait_for(self, words: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while words not in self.out:
            assert self._process.poll() is None, self.out
            assert time.monotonic() < until, self.out
            time.sleep(0.05)

    def send(self, number: signal.Signals) -> int:
        self._process.send_signal(number)
        return self.end()

    def end(self) -> int:
        return self._process.wait(PATIENCE_S)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def jvms(self) -> list[int]:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    started: list[Driver] = []

    def start(*options: str) -> Driver:
        started.append(Driver(tmp_path, *options))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def test_ctrl_c_finishes_the_batch_sums_up_and_leaves_with_0(
    driver: Callable[..., Driver],
) -> None:
    running = driver("--trigger", "1 second")
    running.wait_for(" paid ")

    code = running.send(signal.SIGINT)

    assert code == 0, running.out
    lines = running.out.splitlines()
    assert lines[0].startswith("millstream 0.")
    assert lines[1] == "✓ app       shop: 1 source, 1 table"
    assert "finishing the running batch" in lines
    assert f"  ✓ balanced: {running.home.path}" in lines
    assert lines[-1] == "  millstream batch app.py --compare"
    assert query(running.home, "SELECT reported FROM paid WHERE id = 1") == (
        ("reported",),
        [("1!",)],
    )


def test_sigterm_finishes_the_batch_and_leaves_with_0(driver: Callable[..., Driver]) -> None:
    running = driver("--json")
    running.wait_for('{"dataset": {"name": "orders"')

    code = running.send(signal.SIGTERM)

    assert code == 0, running.out
    last = json.loads(running.out.splitlines()[-1])
    assert last["ledger"]["is_balanced"] is True


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_while_the_jvm_starts_leaves_quietly_and_lets_the_home_go(
    number: signal.Signals, expected: int, driver: Callable[..., Driver]
) -> None:
    starting = driver()
    starting.wait_for("✓ jars")
    jvms = wait_for(lambda: starting.jvms)

    code = starting.send(number)

    assert code == expected
    assert stat.S_IMODE((starting.home.logs / "log4j2.properties").stat().st_mode) == 0o600
    assert "Traceback" not in starting.out
    assert starting.out.splitlines()[-1].startswith("✓ ")
    Lease.acquire(starting.home).release()
    assert wait_for(lambda: all(is_gone(pid) for pid in jvms))


def test_a_dead_jvm_is_reported_in_three_lines(driver: Callable[..., Driver]) -> None:
    running = driver("--trigger", "1 second")
    running.wait_for(" orders ")

    for pid in running.jvms:
        os.kill(pid, signal.SIGKILL)
    code = running.end()

    assert code == 3, running.out
    assert running.out.splitlines()[-3:] == [
        "[DRIVER_LOST] Spark's JVM is gone; what was committed is safe",
        "  fix: start the app again; if memory ran out, raise spark.driver.memory "
        f"(see {running.home.logs / 'spark.log'})",
        "  more: millstream explain DRIVER_LOST",
    ]
    assert "Traceback" not in running.out


def test_a_run_prints_the_link_of_a_console_that_ends_with_it(
    driver: Callable[..., Driver],
) -> None:
    run = driver("--console")
    run.wait_for("✓ console   http://127.0.0.1:")
    url, _, token = run.out.partition("✓ console   ")[2].split()[0].partition("#")

    asked = Request(f"{url}api/overview", headers={"Authorization": f"Bearer {token}"})
    with urlopen(asked, timeout=30) as answer:
        shown = json.load(answer)
    code = run.send(signal.SIGINT)

    assert shown["overview"]["app"] == "shop"
    assert code == 0
    wait_for(lambda: is_closed(url))


def is_closed(url: str) -> bool:
    try:
        socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=5).close()
    except OSError:
        return True
    return False

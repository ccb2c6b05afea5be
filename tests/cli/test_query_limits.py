"""A query that would not end, in a process of its own: signals and limits end it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millstream.lake.home import Home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SMALL = ["--memory", "200MB"]
ENDLESS = "SELECT count(*) AS n FROM t a, t b, t c, t d WHERE a.v + b.v + c.v + d.v > 0"
HUGE = "SELECT a.v + b.v AS v, a.s FROM t a, t b ORDER BY v, s DESC"
LONG_VALUE = "SELECT length(repeat(a.s, 50000000)) AS n FROM t a WHERE a.v < 2"
"""Memory that DuckDB does not count."""
WIDE = "SELECT repeat(s, 1000) AS s FROM t"
"""2 GB of rows."""
BUSY_THREADS = 2
ENDS_WITHIN_S = 60
"""Of a loaded machine: none of these queries would end in a day."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home.at(tmp_path_factory.mktemp("runaway") / "home")
    home.prepare("runaway", sources=[])
    rows = pa.table({"v": range(50_000), "s": ["x" * 40] * 50_000})
    write_deltalake(str(home.table("t")), rows)
    return home


@contextmanager
def started(folder: Path, home: Home, sql: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "millstream.cli", "query", sql, "--home", str(home.path)]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [*command, *options], stdout=out, stderr=err, env={**os.environ, "TMPDIR": str(folder)}
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def printed(folder: Path) -> tuple[str, str]:
    return (folder / "out").read_text(), (folder / "err").read_text()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ENDS_WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def temporary_files(folder: Path) -> list[Path]:
    return list(folder.glob("millstream-query-*"))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_ends_a_query_that_would_not_end(
    home: Home, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with started(tmp_path, home, ENDLESS) as process:
        threads = Path(f"/proc/{process.pid}/task")
        wait_until(
            lambda: bool(temporary_files(tmp_path)) and len([*threads.iterdir()]) > BUSY_THREADS
        )

        process.send_signal(number)
        ended = process.wait(ENDS_WITHIN_S)

    assert (ended, *printed(tmp_path)) == (code, "", "")
    assert temporary_files(tmp_path) == []


@pytest.mark.parametrize(
    ("sql", "options", "limit", "option"),
    [
        (ENDLESS, ["--timeout", "2s"], "2 seconds", "--timeout"),
        (
            HUGE,
            ["--memory", "200MB", "--temp-disk", "50MB"],
            "50 MB of temporary disk",
            "--temp-disk",
        ),
        (LONG_VALUE, SMALL, "200 MB of memory", "--memory"),
        ("SELECT a.v FROM t a, t b", ["--max-rows", "30000"], "30 000 rows", "--max-rows"),
        ("SELECT repeat(s, 200) AS s FROM t", SMALL, "200 MB of memory", "--memory"),
        ("SELECT repeat(s, 10) AS s FROM t", SMALL, None, None),
    ],
    ids=[
        "time",
        "temporary disk",
        "memory of a value",
        "rows",
        "memory of the rows",
        "within its limits",
    ],
)
def test_a_query_stops_at_its_limits_and_stays_below_them(
    home: Home, tmp_path: Path, sql: str, options: list[str], limit: str | None, option: str | None
) -> None:
    with started(tmp_path, home, sql, *options) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    out, err = printed(tmp_path)

    if limit:
        assert err.splitlines() == [
            f"[SQL_OVER_LIMIT] the query stops at its limit of {limit}",
            "  fix: ask for less with WHERE or LIMIT, look for a join without a condition, "
            f"or raise {option}",
            "  more: millstream explain SQL_OVER_LIMIT",
        ]
        assert out == ""
    else:
        assert out.endswith("\n  50 000 rows\n")
    assert process.returncode == (2 if limit else 0)
    # 200 MB of DuckDB's, 512 MB of Python's, and what Python has when nothing runs.
    assert usage.ru_maxrss < (200 + 512 + 250) << 10
    assert temporary_files(tmp_path) == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "options", "limit", "option"),
    [
        ("SELECT a.v FROM t a, t b, t c", ["--max-rows", "3000"], "3 000 rows", "--max-rows"),
        (WIDE, ["--memory", "512MB"], "512 MB of memory", "--memory"),
    ],
    ids=["rows", "memory"],
)
def test_a_query_in_spark_stops_at_its_limits(
    home: Home, tmp_path: Path, sql: str, options: list[str], limit: str, option: str
) -> None:
    with started(tmp_path, home, sql, "--engine", "spark", *options) as process:
        code = process.wait(2 * ENDS_WITHIN_S)

    out, err = printed(tmp_path)
    assert (code, out) == (2, ""), err
    assert err.splitlines()[0] == f"[SQL_OVER_LIMIT] the query stops at its limit of {limit}"
    assert err.splitlines()[1].endswith(f"or raise {option}")


def test_less_memory_than_spark_starts_with_is_refused(home: Home, tmp_path: Path) -> None:
    with started(tmp_path, home, "SELECT 1", "--engine", "spark", *SMALL) as process:
        assert process.wait(ENDS_WITHIN_S) == 2

    assert "at least 512 MB for --engine spark" in printed(tmp_path)[1]

"""The access log, in Python and in SQL: equal tables, whatever arrives and however."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.loading import load
from millstream.testing.oracle import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from millstream.app import App
    from millstream.testing import Script

WEBLOG = Path(__file__).parent
FACES = {"python": WEBLOG / "app.py", "sql": WEBLOG / "sql"}
TRAFFIC = runpy.run_path(str(WEBLOG / "traffic.py"))
lines, write = TRAFFIC["lines"], TRAFFIC["write"]
TABLES = ("per_minute", "by_page", "top_pages", "slowest")
SKETCHED = ("visitors", "per_day")
"""Tables that the app in Python alone has."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "build/weblog"
    place.mkdir(parents=True)
    return place


def app_in(face: str) -> App:
    return load(str(FACES[face]))


def line(clock: str, url: str, seconds: float, *, status: int = 200) -> str:
    return f"2016-12-06T{clock}.318+0000 37.139.9.11 {status} GET {url} {seconds}"


def test_python_and_sql_declare_the_same() -> None:
    python, sql = app_in("python"), app_in("sql")

    assert (python.faults, sql.faults) == ((), ())
    [one], [other] = python.graph.sources, sql.graph.sources
    assert (one.expect, one.event_time, one.watermark) == (
        other.expect,
        other.event_time,
        other.watermark,
    )
    tables = (t for t in python.graph.tables if t.name not in SKETCHED)
    assert {t.name: (t.mode, t.key, t.reads) for t in tables} == {
        t.name: (t.mode, t.key, t.reads) for t in sql.graph.tables
    }


def test_a_log_is_the_same_for_the_same_seed(folder: Path) -> None:
    write(folder, 50, seed=3, lines_per_file=20)

    files = sorted(folder.iterdir())
    assert [file.name for file in files] == [f"access-{n:05d}.log" for n in range(3)]
    assert "".join(f.read_text() for f in files).splitlines() == list(lines(50, seed=3))
    assert files[0].stat().st_mtime < files[1].stat().st_mtime


def hold_a_morning(s: Script) -> dict[str, list[object]]:
    """Send a few lines, with a crash between: one malformed, one late, one of no such status."""
    s.send("log", line("08:58:35", "/codemove/TTCENCUFMH3C", 0.026, status=404))
    s.send("log", line("08:58:36", "/?a=1", 0.5), line("08:58:37", "/?a=2", 0.25))
    s.send("log", "2016-12-06T08:58:38 37.139.9", line("08:58:39", "/", 0.1, status=999))
    s.batch()
    s.send("log", line("09:03:00", "/cart", 1.5), line("08:59:59", "/cart", 0.5))
    s.crash(after="offsets_durable", query="by_page")
    s.restart()
    s.batch()
    s.send("log", line("08:59:58", "/", 9.0), line("09:01:00", "/", 0.75, status=500))
    s.drain()
    s.assert_consistent()
    assert s.verdicts("log") == {"ok": 6, "late": 1, "malformed": 1, "rejected": 1}
    return {name: list(s.table(name).rows()) for name in TABLES}


def test_python_and_sql_give_equal_tables(stream: Callable[..., Script]) -> None:
    answers = {}
    for face in FACES:
        with stream(app_in(face)) as s:
            answers[face] = hold_a_morning(s)
            reported = s.table("log").rows("_verdict", "_reason")
            assert ("malformed", "expected 6 columns, got 2") in reported
            assert s.table("per_minute").rows("requests", "errors") == [
                (1, 0),
                (1, 0),
                (1, 1),
                (3, 1),
            ]
            top = s.table("top_pages").rows("place", "page", "requests")
            assert (1, "/", 2) in top

    assert answers["python"] == answers["sql"]


def test_visitors_of_a_day_are_merged_from_its_minutes(stream: Callable[..., Script]) -> None:
    with stream(app_in("python")) as s:
        hold_a_morning(s)

        [day] = s.table("per_day").rows()
        assert [s.table("visitors").rows("visitors")[0][0].estimate, day.visitors.estimate] == [
            1,
            1,
        ]
        assert day.duration.total == 6
        assert [point.estimate for point in day.duration.quantiles] == [0.5, 1.5, 1.5]
        assert [(one.item, one.estimate) for one in day.pages.top][:2] == [("/", 3), ("/cart", 2)]


def test_every_line_of_a_log_on_disk_is_accounted_for(
    folder: Path, tmp_path: Path, spark: SparkSession
) -> None:
    write(folder, 400, seed=3, lines_per_file=200)

    app_in("sql").run(home=tmp_path / "home", once=True)

    home = Home.at(tmp_path / "home")
    [log] = read_ledger(home).sources
    assert sum(log.verdicts.values()) == log.input == 400
    assert min(log.verdicts[v] for v in ("late", "malformed", "rejected")) > 0
    assert all(rows_of(home, name) for name in TABLES)

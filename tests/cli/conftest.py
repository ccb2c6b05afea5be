"""Commands run in this process, as a user would see them."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from millstream.cli.interrupt import Interrupts
from millstream.cli.program import run_command
from millstream.lake.delta import FencedTable
from millstream.lake.home import Home
from millstream.lake.log import Facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'

LOGGERS = ("", "py4j", "pyspark", "py.warnings")


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def refusal(self) -> list[str]:
        """The lines of the one error that was reported, without the last: where to read more."""
        *lines, more = self.err.splitlines()
        [code] = re.findall(r"^\[([A-Z_]+)\] ", self.err, re.MULTILINE)
        assert more == f"  more: millstream explain {code}"
        return lines


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(log.handlers[:], log.propagate, log.filters[:]) for log in loggers]
    yield
    for handler in logging.getLogger("py4j").handlers:
        handler.close()
    for log, (handlers, propagate, filters) in zip(loggers, before, strict=True):
        log.handlers, log.propagate, log.filters = handlers, propagate, filters
    logging.captureWarnings(capture=False)


@pytest.fixture
def millstream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MILLSTREAM_HOME", raising=False)
    monkeypatch.setenv("MILLSTREAM_CACHE", str(tmp_path / "cache"))

    def run(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = run_command(arguments, Interrupts())
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home as a run of app 'shop' would leave it."""
    home = Home.at(tmp_path / ".millstream" / "shop")
    home.prepare("shop", sources=["orders"])
    verdicts = {"ok": 7, "late": 1, "future": 0, "malformed": 2, "rejected": 0}
    commit(home, "orders", {"input": 10, **verdicts})
    rules = {"rule: price is positive": 2}
    commit(home, "paid", {"input": 7, "written": 5, "quarantined": 2, "dropped": 0, **rules})
    rows = pa.table({"item": ["pen", None], "n": [2, 12]})
    write_deltalake(str(home.table("by_item")), rows)
    return home


def commit(home: Home, name: str, counts: dict[str, int], **facts: Any) -> None:
    """Write a batch without rows that tells of some."""
    FencedTable.create(home.table(name), schema=SCHEMA)
    table = FencedTable(home.table(name), name=name, epoch=1)
    reported = {"query_id": "q", "batch": 3, **facts}
    table.append([], replace(Facts(), **reported).plus(counts))

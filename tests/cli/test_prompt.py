"""The prompt of `millstream query`, in a real terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Outcome

    from millstream.lake.home import Home

ENDLESS = "SELECT count(*) AS n FROM big a, big b, big c, big d WHERE a.v + b.v + c.v + d.v > 0;"
WITHIN_S = 60


class Terminal:
    def __init__(self, pid: int, fd: int) -> None:
        self.pid = pid
        self._fd = fd
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def read_until(self, pattern: str) -> str:
        """Return what the terminal shows up to a pattern, which is looked for no more."""
        deadline = time.monotonic() + WITHIN_S
        while not (found := re.search(pattern, self._seen)):
            assert time.monotonic() < deadline, self._seen
            if select.select([self._fd], [], [], 0.1)[0]:
                self._seen += os.read(self._fd, 10_000).decode()
        shown, self._seen = self._seen[: found.end()], self._seen[found.end() :]
        return shown

    def exit_code(self) -> int:
        deadline = time.monotonic() + WITHIN_S
        while not (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
            assert time.monotonic() < deadline
            # Nobody reads what it prints, and it waits for that.
            if select.select([self._fd], [], [], 0.1)[0]:
                with suppress(OSError):
                    os.read(self._fd, 10_000)
        return os.waitstatus_to_exitcode(ended[1])


@contextmanager
def prompt(home: Home, tmp_path: Path) -> Iterator[Terminal]:
    state = {"TERM": "xterm", "XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "millstream.cli", "query", "--home", str(home.path)]
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(sys.executable, command, {**os.environ, **state})
    try:
        yield Terminal(pid, fd)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        os.close(fd)


def test_statements_are_typed_completed_and_cancelled(home: Home, tmp_path: Path) -> None:
    write_deltalake(str(home.table("big")), pa.table({"v": range(50_000)}))

    with prompt(home, tmp_path) as terminal:
        terminal.read_until("millstream> ")
        terminal.type("\\d\n")
        assert "by_item" in terminal.read_until(r"4 rows[\s\S]*millstream> ")
        terminal.type("\\d by_item\n")
        assert "bigint" in terminal.read_until(r"2 rows[\s\S]*millstream> ")
        terminal.type("SELECT item\n")
        terminal.read_until(r"\.\.\. ")
        terminal.type("FROM by_i\t WHERE n = 2;\n")
        assert "pen" in terminal.read_until(r"1 row[\s\S]*millstream> ")
        terminal.type("SELECT nothing FROM by_item;\n")
        assert "[UNKNOWN_COLUMN]" in terminal.read_until("millstream> ")
        terminal.type(ENDLESS + "\n")
        terminal.read_until(r"d\.v > 0;")
        while not [*tmp_path.glob("millstream-query-*")]:
            time.sleep(0.05)
        terminal.type("\x03")
        terminal.read_until("millstream> ")
        terminal.type("SELECT 40 + 2 AS answer;\n")
        assert "42" in terminal.read_until(r"1 row[\s\S]*millstream> ")
        terminal.type("\\q\n")
        assert terminal.exit_code() == 0
    history = tmp_path / "state" / "millstream" / "query_history"
    assert "FROM by_item WHERE n = 2;" in history.read_text().splitlines()
    assert history.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("attempt", range(5))
def test_sigterm_ends_the_prompt_however_early_it_comes(
    home: Home, tmp_path: Path, attempt: int
) -> None:
    with prompt(home, tmp_path) as terminal:
        terminal.read_until("millstream> ")

        os.kill(terminal.pid, signal.SIGTERM)

        assert terminal.exit_code() == 143


def test_statements_come_from_a_pipe_too(
    millstream: Callable[..., Outcome], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = iter(["SELECT n FROM by_item", "ORDER BY n;", "", "SELECT nothing FROM by_item"])

    def read(_: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)

    outcome = millstream("query", "--home", str(home.path))

    assert outcome.out.splitlines() == ["   n", "   2", "  12", "", "  2 rows"]
    assert outcome.code == 2
    assert outcome.refusal[0] == "[UNKNOWN_COLUMN] no column 'nothing' here"


def test_files_are_for_a_statement_alone(millstream: Callable[..., Outcome], home: Home) -> None:
    outcome = millstream("query", "--home", str(home.path), "--csv", "x.csv")

    assert outcome.refusal[0] == "[USAGE] millstream query: --json, --csv and --parquet need SQL"

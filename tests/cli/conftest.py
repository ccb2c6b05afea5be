"""Commands run in this process, as a user would see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from millstream.cli.interrupt import Interrupts
from millstream.cli.program import run_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


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

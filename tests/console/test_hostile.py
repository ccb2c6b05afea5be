"""Hostile statements through the process of a query: refused, or harmless."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.console.fleet import unpack
from tests.console.hostile import LIMITS, statements

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CANARY = "CANARY-8c1d2f"
LEAST = 500
REFUSED = {
    *("SQL_SYNTAX", "SQL_NOT_READING", "SQL_NOT_ALLOWED", "SQL_NOT_TRANSLATED", "SQL_FAILED"),
    *("SQL_OVER_LIMIT", "UNKNOWN_TABLE", "UNKNOWN_COLUMN", "TABLE_NOT_TRANSLATED"),
}
_GRACE_S = 3
"""An answer that is cancelled ends a moment after its time."""


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Ask every statement of a real home, beside a file that must not be read."""
    folder = tmp_path_factory.mktemp("hostile")
    unpack(folder)
    (folder / "secret.csv").write_text(f"{CANARY}\n1\n")
    before = _contents(folder)
    asked = list(statements(folder / "secret.csv", folder / "touched"))
    done = subprocess.run(
        [sys.executable, "-m", "tests.console.hostile", str(folder / "home"), CANARY],
        input="".join(f"{json.dumps(text)}\n" for text in asked),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert _contents(folder) == before, "a statement wrote"
    return list(zip(asked, map(json.loads, done.stdout.splitlines()), strict=True))


def _contents(folder: Path) -> Mapping[str, int]:
    return {str(file): file.stat().st_size for file in folder.rglob("*") if file.is_file()}


def test_at_least_500_hostile_statements_are_refused_or_harmless(
    replies: Sequence[tuple[str, Mapping[str, Any]]],
) -> None:
    assert len({text for text, _ in replies}) >= LEAST
    for text, told in replies:
        reply = told["reply"]
        assert CANARY not in json.dumps(reply.get("rows", "")), text
        if "fault" in reply:
            assert reply["fault"]["code"] in REFUSED, text


def test_none_of_them_hangs_beyond_its_time(
    replies: Sequence[tuple[str, Mapping[str, Any]]],
) -> None:
    slow = [(text[:80], told["took_s"]) for text, told in replies]

    assert max(slow, key=lambda found: found[1])[1] < LIMITS["time_s"] + _GRACE_S


def test_what_is_answered_has_read_the_tables_alone(
    replies: Sequence[tuple[str, Mapping[str, Any]]],
) -> None:
    answered = {text for text, told in replies if "fault" not in told["reply"]}

    assert {text for text in answered if "read_" in text.lower() or "scan" in text} == set()
    assert len(answered) < len(replies) / 20

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from millstream.lake.unreadable import UnreadableFile, UnreadableFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

    from millstream.lake.home import Home


@pytest.fixture
def record(home: Home) -> UnreadableFiles:
    record = UnreadableFiles(home.connector("orders"))
    record.add([UnreadableFile("/in/b.gz", "it is cut off", 3)])
    record.add([UnreadableFile("/in/a.gz", "it is not gzip", 4)])
    return record


def test_files_that_are_set_aside_are_counted_in_the_ledger_and_listed_with_the_reason(
    millstream: Callable[..., Outcome], home: Home, record: UnreadableFiles
) -> None:
    place = ("--home", str(home.path))

    assert (
        "  ! orders: 2 files set aside; `millstream files` says why\n"
        in millstream("ledger", *place).out
    )
    lines = [line.split() for line in millstream("files", *place).out.splitlines() if line]
    assert lines[1:3] == [
        ["orders", "4", "/in/a.gz", "it", "is", "not", "gzip"],
        ["orders", "3", "/in/b.gz", "it", "is", "cut", "off"],
    ]
    assert lines[-1] == ["2", "files", "set", "aside:", str(home.path)]
    [first, _] = json.loads(millstream("files", "list", *place, "--json").out)["files"]
    assert first == {
        "source": "orders", "path": "/in/a.gz", "reason": "it is not gzip", "batch": 4,
    }  # fmt: skip


def test_retry_leaves_a_request_for_the_driver(
    millstream: Callable[..., Outcome], home: Home, record: UnreadableFiles
) -> None:
    outcome = millstream("files", "retry", "--home", str(home.path), "--source", "orders")

    assert outcome.out == "  ✓ 2 files will be read again\n"
    assert record.requested == {"/in/a.gz", "/in/b.gz"}
    assert len(record.read()) == 2


def test_a_source_that_is_none_is_refused(millstream: Callable[..., Outcome], home: Home) -> None:
    outcome = millstream("files", "--home", str(home.path), "--source", "ordrs")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[ARGUMENT_REFUSED] --source cannot be 'ordrs'",
        "  fix: give a source of the home: orders",
    ]

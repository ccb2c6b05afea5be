"""The log has a line for each batch and event, once, from the moment that a run begins."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from millstream.cli.log import LogDisplay
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import BatchRecord, EventRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from tests.cli.conftest import Outcome

NOW = datetime.now(UTC)


def batch(number: int, dataset: str = "orders") -> BatchRecord:
    at = NOW + timedelta(seconds=number)
    return BatchRecord(dataset, number, at, input=9, output=8, phases={"addBatch": 3})


def test_each_batch_and_event_is_one_line_in_the_order_of_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "history.db"
    with HistoryWriter(path) as writer:
        writer.write([batch(0), EventRecord(NOW, "started", "orders")])
        display = LogDisplay(path)
        display.show(())
        failed = EventRecord(NOW + timedelta(seconds=1.5), "query_failed", "orders", code="UDF")
        writer.write([batch(1), batch(3), failed, batch(2, "clean")])
        display.show(())
        display.show(())

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["event"], line["dataset"], line["level"]) for line in lines] == [
        ("batch", "orders", "info"),
        ("query_failed", "orders", "error"),
        ("batch", "clean", "info"),
        ("batch", "orders", "info"),
    ]
    assert lines[0]["batch"] == 1
    assert lines[0]["phases"] == {"addBatch": 3}
    assert lines[1]["code"] == "UDF"


def test_another_format_is_refused(millstream: Callable[..., Outcome], tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import millstream as ms\napp = ms.App('shop')\n")

    outcome = millstream("run", "--log", "xml")

    assert outcome.refusal[0].startswith("[ARGUMENT_REFUSED] --log cannot be 'xml'")

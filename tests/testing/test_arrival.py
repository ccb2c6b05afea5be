"""Scripted rows of sources whose records a script cannot write."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from tests.raw import raw

import millstream as ms
from millstream.landing.land import Landing
from millstream.testing.arrival import Arrivals


def parse(records: Any) -> Any:
    raise NotImplementedError


@pytest.mark.parametrize(
    "options",
    [
        {"format": "text", "pattern": "(?P<at>.*) (?P<n>.*)"},
        {"format": "text", "pattern": "(?P<at>.*) (?P<n>.*)", "formats": {"at": "d.M.yyyy"}},
        {"format": "logfmt", "rename": {"ts": "at"}},
        {"parse": parse},
    ],
)
def test_a_row_is_sent_by_its_columns_however_the_source_reads_records(
    options: dict[str, Any],
) -> None:
    app = ms.App("shop")
    app.source(name="lines", event_time="at", watermark="1 minute")(
        lambda: ms.Memory("at TIMESTAMP, n INT", **options)
    )
    scripted = Arrivals.instead_of(app.graph.sources[0])
    arrivals = scripted.connector
    assert isinstance(arrivals, Arrivals)

    record = arrivals.record(scripted, {"at": "12:00:03", "n": 1}, date(2026, 1, 1))
    [row] = [r for o in Landing.of(scripted).decode()(iter([raw([record])])) for r in o.to_pylist()]

    noon = datetime(2026, 1, 1, 12, 0, 3, tzinfo=UTC)
    assert (row["at"], row["n"], row["_reason"]) == (noon, 1, None)

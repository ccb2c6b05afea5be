"""Answers served to real stores by a running app: every crash point, two stores at once."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, functions as F
from tests.faults import raises
from tests.systems.stores import rows_in

import millstream as ms
from millstream.crash import POINTS
from millstream.errors import CrashNotReachedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.testing import Script

pytestmark = [pytest.mark.spark]


def visits(*sinks: Any, mode: Any = "update") -> ms.App:
    """Visits counted by page, with the latest visitor; a page called off is deleted."""
    app = ms.App("site")

    @app.source(event_time="at", watermark="1 minute")
    def views() -> ms.Memory:
        return ms.Memory("page STRING, user STRING, at TIMESTAMP")

    @app.serve(to=list(sinks), mode=mode)
    def counts(views: DataFrame) -> DataFrame:
        return views.groupBy("page").agg(
            F.count("*").alias("n"), F.max("at").alias("last"), F.max("user").alias("user")
        )

    return app


def expected(sent: list[tuple[str, str]]) -> dict[str, int]:
    pages: dict[str, int] = {}
    for page, _ in sent:
        pages[page] = pages.get(page, 0) + 1
    users = {page: max(user for p, user in sent if p == page) for page in pages}
    return {page: n for page, n in pages.items() if users[page] != "zoe"}


def test_two_stores_have_every_row_once_whatever_point_the_driver_dies_at(
    stream: Callable[..., Script], tmp_path: Path
) -> None:
    first = ms.SQLite(str(tmp_path / "a.db"), key="page", delete_when="user = 'zoe'")
    second = ms.SQLite(str(tmp_path / "b.db"), table="visits", key=["page"])
    app, sent, hit = visits(first, second), list[tuple[str, str]](), []
    visitors = [("home", "ann"), ("shop", "bob"), ("home", "zoe"), ("news", "cat")]
    with stream(app) as s:
        for number, point in enumerate(p for p in POINTS if p != "home_taken"):
            sent += [visitors[number % 4], visitors[(number + 1) % 4]]
            for page, user in (*sent[-2:], (None, "eve")):
                s.send("views", page=page, user=user, at=f"12:00:{number:02d}")
            try:
                s.crash(after=point, query="counts")
            except CrashNotReachedError:
                continue
            hit.append(point)
            s.restart()
        s.drain()
        refused = s.table("counts__quarantine").rows("_store", "n", "_reason")

    assert hit == [
        "table_taken", "batch_planned", "batch_staged", "offsets_durable", "files_moved",
        "quarantine_commit", "store_written", "store_commit", "sink_commit",
    ]  # fmt: skip
    assert {row["page"]: row["n"] for row in rows_in(first, "counts")} == expected(sent)
    of_all = expected([(page, "") for page, _ in sent])
    assert {row["page"]: row["n"] for row in rows_in(second)} == of_all
    for name in ("'counts'", "'visits'"):
        aside = [row["n"] for row in refused if name in row["_store"]]
        assert len(set(aside)) == len(aside) >= 2, "a batch was put aside twice"
        assert max(aside) == len(POINTS) - 1
    assert {row["_reason"] for row in refused} == {"a column of the key (page) is null"}
    row = app.get("counts", page="shop")
    assert row is not None
    assert (row["n"], row["user"], type(row["last"])) == (expected(sent)["shop"], "bob", datetime)
    with raises("LOOKUP_REFUSED", match="its key is page"):
        app.get("counts", user="bob")
    with raises("NOT_SERVED", match="'views' is in no serving store"):
        app.get("views", page="shop")

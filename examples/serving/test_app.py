"""Page visits: every view once, whenever the driver dies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load
from millstream.testing import assert_prefix_consistent

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from pyspark.sql import SparkSession

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def test_what_is_served_is_current_and_counted_once_after_a_crash(
    stream: Callable[..., Script], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = load(APP)
    with stream(app) as s:
        s.send("views", view=1, visitor="ann", page="/", at="12:00:01")
        s.send("views", view=2, visitor="ann", page="/tea", at="12:00:09")
        s.send("views", view=3, visitor="bob", page="/tea", at="12:00:03")
        s.batch()
        s.send("views", view=4, visitor="ann", page="/mugs", at="12:00:05")
        s.send("views", view=5, visitor="bob", page="/tea", at="12:00:06")
        s.crash(after="store_commit", query="by_page")
        s.restart()
        s.drain()

    tea, ann, bob = (
        app.get("by_page", page="/tea"),
        app.get("last_seen", visitor="ann"),
        app.get("last_seen", visitor="bob"),
    )
    assert tea is not None
    assert tea["views"] == 3
    assert ann is not None
    assert ann["page"] == "/tea"
    assert bob is not None
    assert f"{bob['at']:%H:%M:%S}" == "12:00:06"
    assert app.get("by_page", page="/none") is None


def test_what_is_served_is_the_batch_answer_and_a_proof_does_not_touch_the_store(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    views = [
        {"view": n, "visitor": "ab"[n % 2], "page": "/", "at": f"12:00:{n * 5:02d}"}
        for n in range(8)
    ]

    assert_prefix_consistent(load(APP), views, runs=1, spark=spark)

    assert not Path("visits.db").exists()

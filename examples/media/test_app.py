"""Recommendations are what counting by hand gives, whatever order plays arrive in."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))
PLAYS = (
    (1, "12:00:01", "ann", "Owls"),
    (2, "12:00:02", "ann", "Tides"),
    (3, "12:00:03", "bob", "Tides"),
    (4, "12:00:04", "ann", "Owls"),
    (5, "12:00:05", "bob", "Owls"),
    (6, "12:00:06", "cid", "Harbour"),
    (7, "12:00:07", "cid", "Owls"),
    (8, "12:00:08", "dan", "Owls"),
)


def test_titles_are_recommended_by_how_often_viewers_watched_both(
    stream: Callable[..., Script], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = load(APP)
    with stream(app) as s:
        for play, at, viewer, title in (PLAYS[1], PLAYS[0], PLAYS[0], PLAYS[3], PLAYS[2]):
            s.send("plays", play=play, at=at, viewer=viewer, title=title)
        s.batch()
        for play, at, viewer, title in reversed(PLAYS[4:]):
            s.send("plays", play=play, at=at, viewer=viewer, title=title)
        s.send("plays", play=9, at="12:10:00", viewer="eve", title="Room 12")
        s.crash(after="sink_commit", query="together")
        s.restart()
        s.send("plays", play=10, at="12:20:00", viewer="eve", title="Room 12")
        s.drain()

        titles = [
            {t for _, _, who, t in PLAYS if who == viewer} for viewer in ("ann", "bob", "cid")
        ]
        pairs = Counter(p for seen in titles for p in combinations(sorted(seen), 2))
        counts = {**pairs, **{(b, a): n for (a, b), n in pairs.items()}}
        assert s.table("together").rows("title", "other", "viewers") == sorted(
            (title, other, viewers) for (title, other), viewers in counts.items()
        )
        s.assert_consistent()

    owls, dan, ann = (
        app.get("also_watched", title="Owls"),
        app.get("for_you", viewer="dan"),
        app.get("for_you", viewer="ann"),
    )
    assert owls is not None
    assert owls["titles"] == ["Tides", "Harbour"]
    assert dan is not None
    assert dan["titles"] == ["Tides", "Harbour"]
    assert ann is not None
    assert ann["titles"] == ["Harbour"]
    assert app.get("for_you", viewer="eve") is None

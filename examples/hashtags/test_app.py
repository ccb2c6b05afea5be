"""A sliding minute, and what is most frequent in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def test_each_minute_has_its_most_frequent_hashtags_once_it_is_final(
    stream: Callable[..., Script],
) -> None:
    def posted(number: int, at: str, text: str, language: str = "en") -> None:
        s.send("posts", post=number, language=language, text=text, at=at)

    with stream(load(APP)) as s:
        posted(1, "12:00:58", "#Rain #rain and #Jazz")
        posted(2, "12:00:01", "#rain #maps", "de")
        posted(2, "12:00:01", "#rain #maps", "de")
        s.batch()
        posted(3, "12:00:57", "#jazz #maps")
        s.batch()
        assert not any(row.minute.end.minute == 1 for row in s.table("trending").rows())
        assert s.table("ever").rows("language", "tag", "rank") == [
            ("de", "maps", 2),
            ("de", "rain", 1),
            ("en", "jazz", 1),
            ("en", "maps", 3),
            ("en", "rain", 2),
        ]

        posted(4, "12:01:10.001", "#trains")
        s.batch()

        last = [
            (row.tag, row.posts, row.rank)
            for row in s.table("trending").rows()
            if row.minute.end.minute == 1
        ]
        assert sorted(last, key=lambda row: row[2]) == [
            ("rain", 2, 1),
            ("maps", 2, 2),
            ("jazz", 2, 3),
        ]
        s.assert_consistent()

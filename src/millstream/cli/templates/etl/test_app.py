"""The app under a script: rows arrive when they are sent, and time moves when it is told to."""

from collections.abc import Callable

from app import app

from millstream.testing import Script


def test_a_record_that_comes_twice_counts_once_and_an_implausible_one_not_at_all(
    stream: Callable[..., Script],
) -> None:
    with stream(app) as s:
        s.send("raw", at="12:00:03", sensor="s1", number=1, value=20.0)
        s.send("raw", at="12:00:03", sensor="s1", number=1, value=20.0)
        s.send("raw", at="12:00:04", sensor="s1", number=2, value=999.0)
        s.batch()
        s.drain()

        assert s.table("per_minute").rows("sensor", "records", "most") == [("s1", 1, 20.0)]
        assert s.verdicts("raw") == {"ok": 3}
        s.assert_consistent()

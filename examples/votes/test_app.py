"""The election: each voter once, whatever order ballots arrive in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.testing import Script

APP = str(Path(__file__).with_name("app.py"))


def ballot(
    number: int, at: str, voter: str, choice: str, district: str = "east"
) -> dict[str, object]:
    return {"ballot": number, "at": at, "voter": voter, "choice": choice, "district": district}


def test_the_first_ballot_of_a_voter_counts_even_if_it_arrives_after_another(
    stream: Callable[..., Script],
) -> None:
    with stream(load(APP)) as s:
        s.send("ballots", **ballot(2, "12:00:20", "ann", "ferry"))
        s.send("ballots", **ballot(3, "12:00:21", "bob", "bridge", "west"))
        s.send("ballots", **ballot(4, "12:00:22", "eve", "zeppelin"))
        s.batch()
        assert s.table("results").rows() == [("east", "ferry", 1), ("west", "bridge", 1)]

        s.send("ballots", **ballot(1, "12:00:10", "ann", "tunnel"))
        s.send("ballots", **ballot(3, "12:00:21", "bob", "bridge", "west"))
        s.send("ballots", **ballot(5, "12:00:40", "bob", "ferry", "west"))
        s.crash(after="offsets_durable", query="votes")
        s.restart()
        s.batch()
        s.send("ballots", **ballot(6, "12:03:00", "cid", "ferry"))
        s.batch()
        s.send("ballots", **ballot(0, "11:58:00", "bob", "tunnel", "west"))
        s.drain()

        assert s.table("results").rows() == [
            ("east", "ferry", 1),
            ("east", "tunnel", 1),
            ("west", "bridge", 1),
        ]
        assert s.table("ignored").rows("ballot", "voter") == [(2, "ann"), (5, "bob")]
        assert s.table("valid__quarantine").rows("ballot") == [(4,)]
        assert s.verdicts("ballots") == {"ok": 7, "late": 1}
        s.assert_consistent()

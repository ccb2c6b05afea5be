from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

    from millstream.testing import Script

PRESENCE = str(Path(__file__).parents[2] / "examples" / "presence" / "app.py")


@pytest.mark.spark
def test_state_is_read_key_by_key_while_the_app_runs(
    stream: Callable[..., Script], millstream: Callable[..., Outcome]
) -> None:
    app = load(PRESENCE)
    with stream(app) as s:
        for clock, user in (("12:00:00", "ann"), ("12:00:01", "ann"), ("12:00:30", "bob")):
            s.send("clicks", user=user, page=1, at=clock)
        s.batch()
        place = str(s._home.path)

        found = millstream("state", PRESENCE, "presence", "--home", place, "--json")
        ann = millstream("state", PRESENCE, "changes", "--where", "user = 'ann'", "--home", place)
        wrong = millstream("state", PRESENCE, "presence", "--where", "usr = 1", "--home", place)
        other = millstream("state", PRESENCE, "presense", "--home", place)
        shutil.rmtree(s._home.checkpoint("changes") / "commits")
        early = millstream("state", PRESENCE, "presence", "--home", place)

    table = json.loads(found.out)
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    by_user = {row["user"]: row for row in rows}
    assert by_user["ann"]["status"] == "inactive"
    assert list(by_user["ann"]["_timers"]) == ["timeout"]
    assert (by_user["bob"]["status"], by_user["bob"]["_waiting"]) == (None, 1)
    assert "inactive" in ann.out
    assert "bob" not in ann.out
    assert "0 rows" in early.out
    assert wrong.err.startswith("[ARGUMENT_REFUSED] --where"), "and nothing of Spark's"
    assert other.err.startswith("[UNKNOWN_STATE]")

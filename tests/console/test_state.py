"""The state of a key, read with Spark in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.console.conftest import TOKEN, Client, served_home
from tests.old_home import example, unpack

from millstream.lake.home import Home

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_what_a_function_keeps_of_a_key_is_read_by_its_key_alone(tmp_path: Path) -> None:
    unpack("presence", tmp_path)
    app = example("presence", tmp_path)
    with served_home(app, Home.at(tmp_path / "home")) as console:
        client = Client(console.url, TOKEN)
        [listed] = client.ask("/api/states").json["states"]
        some = client.post("/api/state", name=listed["name"]).json
        user = some["rows"][0][0]
        one = client.post("/api/state", name=listed["name"], key={"user": user}).json
        hostile = "' OR reflect('java.lang.System', 'getenv', 'HOME') = '"
        none = client.post("/api/state", name=listed["name"], key={"user": hostile}).json
        client.close()

    assert (listed["dataset"], listed["key"]) == ("changes", ["user"])
    assert some["columns"][:2] == ["user", "status"]
    assert [row[0] for row in one["rows"]] == [user]
    assert none["rows"] == []

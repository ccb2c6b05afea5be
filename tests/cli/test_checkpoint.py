from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.checkpoint.checksum import write_sealed
from millstream.checkpoint.entry import CommitEntry, Offsets
from millstream.lake.delta import FencedTable
from millstream.lake.home import Home
from millstream.lake.log import Facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
APP = """
import millstream as ms
app = ms.App("shop")
app.source(name="orders")(lambda: ms.Memory("id BIGINT"))
app.sql("paid", "SELECT id FROM orders")
app.sql("by", "SELECT id FROM paid")
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home as a run of app 'shop' would leave it."""
    (tmp_path / "app.py").write_text(APP)
    home = Home.at(tmp_path / ".millstream" / "shop")
    home.prepare("shop", sources=["orders"])
    FencedTable.create(home.table("paid"), schema=SCHEMA)
    facts = replace(Facts(), query_id="q", batch=1)
    FencedTable(home.table("paid"), name="paid", epoch=1).append([], facts)
    path = home.checkpoint("paid")
    write_sealed(path / "metadata", '{"id": "q"}')
    for n in (0, 1):
        write_sealed(path / "offsets" / str(n), Offsets(0, n, (f'{{"version":{n}}}',)).to_text())
        write_sealed(path / "commits" / str(n), CommitEntry(0).to_text())
    return home


def test_a_sound_home_is_said_to_be_so(millstream: Callable[..., Outcome], home: Home) -> None:
    looked = millstream("checkpoint", "inspect")
    repaired = millstream("checkpoint", "repair")

    assert (looked.code, looked.out) == (0, f"  ✓ 1 checkpoint sound: {home.path}\n")
    assert (repaired.code, repaired.out) == (0, f"  ✓ nothing to repair: {home.path}\n")


def test_damage_is_shown_file_by_file(millstream: Callable[..., Outcome], home: Home) -> None:
    (home.checkpoint("paid") / "metadata").unlink()
    (home.checkpoint("paid") / "commits" / "1").write_bytes(b"")
    (home.checkpoint("paid") / "commits" / ".2.a.tmp").touch()

    outcome = millstream("checkpoint", "inspect", "app.py")

    assert outcome.code == 3
    assert outcome.out.splitlines() == [
        "  query  file                         what",
        "  paid   commits/.2.a.tmp  harmless   a write that was cut short left it behind; "
        "nothing reads it",
        "  paid   metadata          ✗ damaged  it is missing",
        "  paid   commits/1         ✗ damaged  it is empty",
        "",
        f"  ✗ 1 checkpoint damaged: {home.path}",
        "  fix: `millstream checkpoint repair APP`, with the same --home",
    ]


def test_damage_is_shown_as_json(millstream: Callable[..., Outcome], home: Home) -> None:
    (home.checkpoint("paid") / "metadata").unlink()

    outcome = millstream("checkpoint", "inspect", "--home", str(home.path), "--json")

    found = json.loads(outcome.out)
    assert outcome.code == 3
    assert found["is_sound"] is False
    [checkpoint] = found["checkpoints"]
    assert (checkpoint["query"], checkpoint["holds"]) == ("paid", 1)
    assert checkpoint["findings"][0]["file"] == "metadata"


def test_a_repair_says_what_it_did_and_where_the_originals_are(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    (home.checkpoint("paid") / "metadata").write_bytes(b"")

    outcome = millstream("checkpoint", "repair")

    [aside] = (home.path / "aside").iterdir()
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "  paid: checkpoints/paid/metadata: written again, with the identity that the table knows",
        "",
        f"  ✓ repaired: {home.path}",
        f"  what was removed or rewritten is in {aside}",
    ]
    assert millstream("checkpoint", "inspect").code == 0


def test_tables_are_moved_aside_only_if_it_is_agreed_to(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    (home.checkpoint("paid") / "offsets" / "1").unlink()

    asked = millstream("checkpoint", "repair", "--json")
    agreed = millstream("checkpoint", "repair", "--yes", "--json")

    assert asked.code == 2
    assert asked.err.startswith("[REPAIR_NOT_AGREED] ")
    assert json.loads(asked.out)["is_done"] is False
    assert agreed.code == 0
    assert json.loads(agreed.out)["remedies"][0]["tables"] == ["paid", "by"]
    assert home.tables == ()
    assert (Path(json.loads(agreed.out)["aside"]) / "tables" / "paid").exists()


def test_a_rebuild_moves_an_answer_aside_if_it_is_agreed_to(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    asked = millstream("checkpoint", "rebuild", "paid")
    agreed = millstream("checkpoint", "rebuild", "paid", "--yes")

    assert (asked.code, agreed.code) == (2, 0)
    assert asked.err.startswith("[REPAIR_NOT_AGREED] this would move tables aside")
    assert agreed.out.startswith("  paid: computed again from what is landed: paid, by\n")
    assert home.tables == ()

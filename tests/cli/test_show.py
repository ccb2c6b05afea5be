from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome

    from millstream.lake.home import Home

SHOP = """\
import millstream as ms
app = ms.App("shop")
@app.source(event_time="at", watermark="1 minute", trigger="5 seconds")
def orders(): return ms.Memory("id BIGINT NOT NULL, at TIMESTAMP, tags ARRAY<STRING>")
@app.view
def recent(orders): return orders
@app.table(mode="update", key=["item"], expect={"n is positive": "n > 0"}, on_violation="drop")
def by_item(recent): return recent
"""


@pytest.fixture(autouse=True)
def shop(millstream: Callable[..., Outcome]) -> None:
    Path("app.py").write_text(SHOP)


def test_a_table_is_shown_with_versions_and_rows(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    outcome = millstream("show", "by_item")

    lines = outcome.out.splitlines()
    assert lines[:7] == [
        "by_item: table · update by item",
        "  declared  app.py:7",
        "  reads     recent",
        "  read by   -",
        "  trigger   default",
        "  rule      n is positive: n > 0 (else drop)",
        "  state     never ran",
    ]
    assert lines[8:11] == ["  column  type", "  item    STRING", "  n       BIGINT"]
    assert lines[12].split() == ["version", "committed", "batch", "rows", "operation"]
    assert lines[13].split()[0] == "0"
    assert lines[15:] == ["  item   n", "  pen    2", "  NULL  12"]


def test_a_table_has_a_shape_in_json(millstream: Callable[..., Outcome], home: Home) -> None:
    outcome = millstream("show", "by_item", "--json", "--rows", "1")

    found = json.loads(outcome.out)
    assert found["node"]["mode"] == "update"
    assert found["schema"][1] == {"name": "n", "type": "BIGINT", "nullable": True}
    assert found["sample"] == {"columns": ["item", "n"], "rows": [["pen", 2]]}
    assert found["declared"]["rules"] == {"n is positive": "n > 0"}


def test_the_versions_of_a_table_say_which_batch_they_are(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    outcome = millstream("show", "paid", "--home", str(home.path), "--json", "--rows", "0")

    found = json.loads(outcome.out)
    assert (found["node"], found["sample"]) == (None, None)
    assert [(v["version"], v["batch"]) for v in found["versions"]] == [(1, 3), (0, None)]
    assert found["standing"]["total"] == 5


def test_a_source_that_never_ran_is_shown_as_it_is_declared(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("show", "orders")

    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "orders: source · memory",
        "  declared    app.py:3",
        "  reads       -",
        "  read by     recent",
        "  trigger     5 seconds",
        "  event time  at, watermark 1 minute",
        "  state       never ran",
        "",
        "  column  type",
        "  id      BIGINT         NOT NULL",
        "  at      TIMESTAMP",
        "  tags    ARRAY<STRING>",
    ]


def test_a_view_is_shown_without_what_only_stored_datasets_have(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("show", "recent")

    assert outcome.out.splitlines() == [
        "recent: view",
        "  declared  app.py:5",
        "  reads     orders",
        "  read by   by_item",
    ]


def test_a_name_that_is_not_there_is_refused_with_the_nearest_one(
    millstream: Callable[..., Outcome], home: Home
) -> None:
    outcome = millstream("show", "by_itm")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[UNKNOWN_DATASET] there is no dataset 'by_itm'",
        "  fix: did you mean 'by_item'? names are by_item, orders, paid, recent",
    ]


@pytest.mark.parametrize("app", [(), ("app.py",)])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_settings_are_shown_as_their_own_command_shows_them(
    millstream: Callable[..., Outcome], app: tuple[str, ...], form: tuple[str, ...]
) -> None:
    Path("millstream.toml").write_text('[profile.prod.sources.ordrs]\nkind = "rate"\n')
    options = ("--profile", "prod", "--home", "elsewhere", *form)

    outcome = millstream("show", "--settings", *app, *options)

    assert outcome == millstream("settings", *app, *options)
    assert outcome.code == 1
    assert "UNKNOWN_SOURCE" in outcome.out


@pytest.mark.parametrize(
    ("typed", "cause"),
    [
        ((), "it takes NAME, or --settings"),
        (("orders", "app.py", "--settings"), "--settings takes APP alone, no NAME"),
    ],
)
def test_a_dataset_or_the_settings_are_to_be_asked_for(
    millstream: Callable[..., Outcome], typed: tuple[str, ...], cause: str
) -> None:
    outcome = millstream("show", *typed)

    assert outcome.code == 2
    assert outcome.refusal == [
        f"[USAGE] millstream show: {cause}",
        "  fix: `millstream show --help` shows what it takes",
    ]


def test_a_number_of_rows_that_is_none_is_refused(millstream: Callable[..., Outcome]) -> None:
    for number in ("-1", "few"):
        outcome = millstream("show", "orders", "--rows", number)

        assert outcome.code == 2
        assert outcome.err.startswith("[USAGE] millstream show: Invalid value for '--rows'")


def test_a_lost_file_of_a_table_is_reported(millstream: Callable[..., Outcome], home: Home) -> None:
    for file in home.table("by_item").glob("*.parquet"):
        file.unlink()

    outcome = millstream("show", "by_item")

    assert outcome.code == 3
    assert outcome.err.startswith(f"[HOME_DAMAGED] {str(home.table('by_item'))!r} is damaged: ")

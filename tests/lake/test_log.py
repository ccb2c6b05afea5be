from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from tests.faults import raises

from millstream.lake.delta import FencedTable
from millstream.lake.fenced_log import last_facts
from millstream.lake.log import Facts, commits, facts_of

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


@pytest.fixture
def table(tmp_path: Path) -> FencedTable:
    FencedTable.create(tmp_path / "t", schema=SCHEMA)
    return FencedTable(tmp_path / "t", name="t", epoch=1)


def test_commits_are_read_from_the_last_to_the_first(table: FencedTable) -> None:
    table.take()
    table.append([], replace(Facts(), query_id="q", batch=0))

    found = [(c.version, c.operation, c.is_batch, c.facts is None) for c in commits(table.path)]

    assert found == [
        (2, "WRITE", True, False),
        (1, "WRITE", False, False),
        (0, "CREATE TABLE", False, True),
    ]


def test_the_files_say_what_delta_rs_says(table: FencedTable) -> None:
    for batch in range(3):
        table.append([], replace(table.facts, query_id="q", batch=batch).plus({"input": 2}))
    DeltaTable(str(table.path)).optimize.compact()

    assert facts_of(table.path) == last_facts(DeltaTable(str(table.path))) == table.facts
    assert facts_of(table.path).totals == {"input": 6}


def test_a_table_that_is_not_there_has_no_commits(tmp_path: Path) -> None:
    assert list(commits(tmp_path)) == []
    assert facts_of(tmp_path) == Facts()


def test_a_commit_that_says_nothing_of_itself_is_a_commit_all_the_same(
    table: FencedTable,
) -> None:
    (table.path / "_delta_log" / f"{1:020d}.json").write_text('{"txn":{"appId":"x","version":1}}')

    last, _ = commits(table.path)

    assert (last.version, last.operation, last.facts, last.is_batch) == (1, "", None, False)
    assert facts_of(table.path) == Facts()


@pytest.mark.parametrize("text", ["", '{"commitInfo":{"times', '{"commitInfo":{"timestamp":"x"}}'])
def test_a_commit_that_cannot_be_read_is_named(text: str, table: FencedTable) -> None:
    file = table.path / "_delta_log" / f"{0:020d}.json"
    file.write_text(text)

    with raises("HOME_DAMAGED") as error:
        list(commits(table.path))

    assert error.value.what.startswith(f"{str(file)!r} is damaged: ")

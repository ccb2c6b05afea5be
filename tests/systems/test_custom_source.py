from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.apps import app_of, forget_commit, rows, run

from millstream.systems.custom.source import Custom

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Shelf:
    """Records in one file: as many as there are lines."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)

    def earliest(self) -> Mapping[str, Any]:
        return {"line": 0}

    def latest(self, start: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"line": max(start["line"], len(self._lines()))}

    def read(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Iterator[str]:
        yield from self._lines()[start["line"] : end["line"]]

    def _lines(self) -> list[str]:
        return Path(self.file).read_text().splitlines()


@pytest.mark.spark
def test_records_of_a_reader_land_once_over_restarts_and_retries(
    spark: object, tmp_path: Path
) -> None:
    shelf, home = tmp_path / "shelf", tmp_path / "home"
    app = app_of(Custom(Shelf(shelf), schema="id BIGINT"))
    shelf.write_text('{"id": 1}\n{"id": "two"}\n')
    run(app, home)
    forget_commit(home, "readings")
    with shelf.open("a") as more:
        more.write(json.dumps({"id": 3}) + "\n")
    run(app, home)
    run(app, home)

    assert rows(home, "readings", "id", "_verdict", "_origin", "_position") == [
        (1, "ok", "{'line': 2}", 0),
        (3, "ok", "{'line': 3}", 0),
        (None, "malformed", "{'line': 2}", 1),
    ]


def test_a_format_that_is_none_is_refused(tmp_path: Path) -> None:
    [fault] = app_of(Custom(Shelf(tmp_path), format="xml")).faults
    assert fault.code == "FORMAT_REFUSED"

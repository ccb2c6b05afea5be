from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.apps import app_of, rows, run

from millstream.systems.delta.source import Delta

if TYPE_CHECKING:
    from pathlib import Path


def add(table: Path, *numbers: int) -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    times = pa.array([noon] * len(numbers), pa.timestamp("us", "UTC"))
    write_deltalake(table, pa.table({"id": list(numbers), "at": times}), mode="append")


@pytest.mark.spark
def test_rows_of_a_delta_table_land_as_they_are_appended(spark: object, tmp_path: Path) -> None:
    table, home = tmp_path / "table", tmp_path / "home"
    add(table, 1, 2)
    app = app_of(Delta(str(table)), event_time="at", watermark="1 minute")
    run(app, home)
    add(table, 3)
    run(app, home)

    assert rows(home, "readings", "id", "_verdict", "_origin") == [
        (number, "ok", str(table)) for number in (1, 2, 3)
    ]


def test_a_folder_without_a_table_is_refused(tmp_path: Path) -> None:
    [fault] = app_of(Delta(str(tmp_path))).faults
    assert fault.code == "DELTA_MISSING"


def test_the_schema_is_the_table_s(tmp_path: Path) -> None:
    add(tmp_path / "table", 1)
    app = app_of(Delta(str(tmp_path / "table")), event_time="att", watermark="1 minute")
    [fault] = app.faults
    assert fault.code == "EVENT_TIME_COLUMN"
    assert "did you mean 'at'?" in fault.fix

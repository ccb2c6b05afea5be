"""Every usual shape of a record is read right, or refused with the fix, as the page says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.systems.shapes import MARK, TYPED, page_text

import millstream as ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.testing.kafka import Broker

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "records.md"


@pytest.mark.spark
def test_the_page_lists_what_is_read_and_what_is_refused(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    text = page_text(spark, broker.servers, tmp_path)

    assert "WRONG" not in text
    assert f"<!-- {MARK}:begin -->\n{text}\n<!-- {MARK}:end -->" in PAGE.read_text()


@pytest.mark.parametrize("form", TYPED)
def test_formats_of_what_has_types_of_its_own_are_refused_with_the_way_to_compute_them(
    form: str, tmp_path: Path
) -> None:
    (tmp_path / form).mkdir()
    app = ms.App("shapes")
    files = ms.Files(
        str(tmp_path / form), format=form, schema="at TIMESTAMP", formats={"at": "epoch_ms"}
    )
    app.source(name="rows")(lambda: files)

    [refused] = app.faults

    assert (refused.code, "event_time=" in refused.fix) == ("FORMATS", True)

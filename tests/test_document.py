from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.document import write_between_marks
from tests.harness import HarnessError

if TYPE_CHECKING:
    from pathlib import Path

BEGIN, END = "<!-- chaos:begin -->", "<!-- chaos:end -->"


def test_a_table_takes_the_place_of_the_last_one_and_of_nothing_else(tmp_path: Path) -> None:
    document = tmp_path / "guarantees.md"
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")

    for _ in range(2):
        write_between_marks(document, "chaos", "new")
        assert document.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


def test_a_document_without_marks_is_refused_and_left_alone(tmp_path: Path) -> None:
    document = tmp_path / "guarantees.md"
    document.write_text("nothing")

    with pytest.raises(HarnessError, match=f"'guarantees.md' lacks {BEGIN} and {END}"):
        write_between_marks(document, "chaos", "new")

    assert document.read_text() == "nothing"

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.chaos.upkeep import POINTS, fire

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.long
def test_no_kill_during_maintenance_loses_doubles_or_cuts_off_anything(tmp_path: Path) -> None:
    result = fire(tmp_path, kills=len(POINTS), seed=1)

    assert (result.lost, result.duplicated, result.wrong, result.cut_off) == (0, 0, 0, 0)
    assert {point for point in POINTS if result.by_point[point]} == {*POINTS}
    assert result.compacted > 0
    assert result.deleted > 0

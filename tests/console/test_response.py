"""The status of each error."""

from __future__ import annotations

import pytest

from millstream.console.response import error_response
from millstream.errors import MillstreamError, fault
from millstream.sql.limits import over_limit


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (over_limit("30 seconds", "--timeout"), 422),
        (fault("UNKNOWN_TABLE", name="t", nearest="", known="clean"), 422),
        (fault("UNKNOWN_DATASET", name="t", nearest="", known="clean"), 404),
        (fault("HOME_DAMAGED", file="0.json", why="ValueError"), 503),
        (fault("UNEXPECTED", cause="RuntimeError: boo", trace="trace.txt"), 500),
    ],
    ids=lambda value: getattr(value, "code", ""),
)
def test_only_what_nobody_expects_is_a_defect_of_the_console(
    error: MillstreamError, status: int
) -> None:
    assert error_response(error).status_code == status

"""What a test expects to be raised: an error, by its code."""

from __future__ import annotations

import pytest

from millstream.errors import MillstreamError


def raises(*codes: str, match: str | None = None) -> pytest.RaisesExc[MillstreamError]:
    """Expect an error that has one of some codes."""
    return pytest.raises(MillstreamError, match=match, check=lambda error: error.code in codes)

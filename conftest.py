"""What tests, examples and code blocks of the documentation share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.errors import secret

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _own_secrets() -> Iterator[None]:
    """What a test conceals is concealed in its own errors alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret, "_CONCEALED", dict(secret._CONCEALED))
        yield

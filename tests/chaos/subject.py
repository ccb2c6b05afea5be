"""An app to be tried and the way to feed it, as the command line names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.chaos.feed import Clock
from tests.document import find

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.chaos.feed import Feeder


@dataclass(frozen=True, slots=True)
class Subject:
    """An app file, and what makes its feeder of a folder and a seed."""

    app: str
    feeder: Callable[[Path, int], Feeder] = Clock

    @staticmethod
    def parse(text: str) -> Subject:
        """Read `app.py`, for an app that makes its own input, or `app.py=module:name`.

        Raises:
            HarnessError: There is no such feeder.
        """
        app, _, feeder = text.partition("=")
        return Subject(app, find(feeder)) if feeder else Subject(app)

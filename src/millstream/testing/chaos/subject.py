"""An app to be tried and the way to feed it, as the command line names them."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.errors import FeederMissingError
from millstream.testing.chaos.feed import Clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.testing.chaos.feed import Feeder


@dataclass(frozen=True, slots=True)
class Subject:
    """An app file, and what makes its feeder of a folder and a seed."""

    app: str
    feeder: Callable[[Path, int], Feeder] = Clock

    @staticmethod
    def parse(text: str) -> Subject:
        """Read `app.py`, for an app that makes its own input, or `app.py=module:name`.

        Raises:
            FeederMissingError: There is no such feeder.
        """
        app, _, feeder = text.partition("=")
        return Subject(app, _find(feeder)) if feeder else Subject(app)


def _find(text: str) -> Any:
    module, _, name = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise FeederMissingError(text, cause=str(error)) from error

"""Results in a document, between two marks of their own; and what a command line names."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from tests.harness import HarnessError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a table in Markdown, line by line."""
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def write_between_marks(document: Path, mark: str, text: str) -> None:
    """Put a text in the place of whatever stands between two marks of a document.

    Raises:
        HarnessError: The document has no such marks.
    """
    begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    before, has_begin, rest = document.read_text().partition(begin)
    _, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        message = f"{document.name!r} lacks {begin} and {end}"
        raise HarnessError(message)
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def find(text: str) -> Any:
    """Find what `module:name` names, in the folder a command was given in or installed.

    Raises:
        HarnessError: There is no such thing.
    """
    module, _, name = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"there is no {text!r}: {error}"
        raise HarnessError(message) from error

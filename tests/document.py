"""Results in a document, between two marks of their own; and what a command line names."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from millstream.errors import MarksMissingError, NameNotFoundError

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
        MarksMissingError: The document has no such marks.
    """
    begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    before, has_begin, rest = document.read_text().partition(begin)
    _, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        raise MarksMissingError(document.name, marks=(begin, end))
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def find(text: str) -> Any:
    """Find what `module:name` names, in the folder a command was given in or installed.

    Raises:
        NameNotFoundError: There is no such thing.
    """
    module, _, name = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise NameNotFoundError(text, cause=str(error)) from error

"""The lines of an app that declare a dataset."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.model.dataset import Dataset

_MOST_LINES = 120


@dataclass(frozen=True, slots=True)
class CodeView:
    """The code of a dataset, and where it is."""

    file: str
    line: int
    """The first line of `text`."""
    text: str
    """Empty if the file is not there any more."""

    @staticmethod
    def of(dataset: Dataset) -> CodeView:
        """Read the code of a dataset from the file that declares it."""
        at = dataset.at
        try:
            lines = Path(at.file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return CodeView(at.file, at.line, "")
        first, last = _span("\n".join(lines), at.line) if at.file.endswith(".py") else (1, 0)
        return CodeView(at.file, first, "\n".join(lines[first - 1 : last or _MOST_LINES]))


def _span(text: str, line: int) -> tuple[int, int]:
    """Return the first and the last line of the statement at a line, with its decorators."""
    try:
        statements = ast.parse(text).body
    except SyntaxError:
        return line, line
    for statement in statements:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(each.lineno for each in decorators)])
        last = statement.end_lineno or statement.lineno
        if first <= line <= last:
            return first, min(last, first + _MOST_LINES)
    return line, line

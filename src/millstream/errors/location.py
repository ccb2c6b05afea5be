"""Where in the user's code an error points to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_CELL = re.compile(r"cell (\d+)")


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A line of the user's code."""

    file: str
    line: int
    column: int | None = None
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict, compare=False, repr=False)
    """The lines of the parts of a declaration that has one for each: a header in SQL."""

    def of(self, *part: str) -> Location:
        """The line of an option, of a rule ("expect", name) or of an input ("from", name)."""
        return Location(self.file, self.lines[part]) if part in self.lines else self

    @property
    def cell(self) -> int | None:
        """The number of the notebook's cell; None if it is a file."""
        found = _CELL.fullmatch(self.file)
        return int(found[1]) if found else None

    def __str__(self) -> str:
        if self.cell is not None:
            return f"{self.file}, line {self.line}"
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


def cell_name(number: int) -> str:
    """Name a notebook's cell as if it were a file.

    >>> print(Location(cell_name(3), 2))
    cell 3, line 2
    """
    return f"cell {number}"


def relative(file: str) -> str:
    """Shorten a path that lies below the working folder."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file

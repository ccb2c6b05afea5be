"""Notebooks: which cell some code was typed into, and which execution of a cell is running."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from millstream.errors import cell_name, relative


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of one cell."""

    number: int
    """As the notebook counts them: the 3 of `In [3]`."""
    cell: str | None = None
    """What stays the same when a cell is executed again; None where the front end does not say."""


def execution() -> Execution | None:
    """Return the running execution of a cell; None outside of IPython."""
    shell = _shell()
    if shell is None:
        return None
    request = getattr(shell, "parent_header", None) or {}
    return Execution(shell.execution_count, (request.get("metadata") or {}).get("cellId"))


def place_of(file: str) -> str:
    """Name the file that code was compiled from: by its path, or by its cell."""
    shell = _shell()
    label = shell.compile.format_code_name(file) if shell is not None else None
    if label is None:
        return relative(file)
    return cell_name(int(label[1].removeprefix("In[").removesuffix("]")))


def _shell() -> Any | None:
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return ask() if ask is not None else None

"""Rows as Spark prints them, on the standard error of the driver."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_PRINTED = re.compile(r"-{43}|Batch: \d+|[+|].*|only showing top .*")
"""What Spark's console sink prints."""
_LOOK_EVERY_S = 0.2


def drawn(rows: list[dict[str, Any]], most: int) -> Iterator[str]:
    r"""Draw rows as a table.

    >>> print(*drawn([{"n": 1}, {"n": None}], 1), sep="\n")
    +---+
    |n  |
    +---+
    |1  |
    +---+
    only showing top 1 row
    """
    names = list(rows[0]) if rows else []
    cells = [[_cell(row[name]) for name in names] for row in rows[:most]]
    widths = [max(3, *map(len, column)) for column in zip(names, *cells, strict=True)]
    rule = f"+{'+'.join('-' * width for width in widths)}+"
    lines = ["|".join(map(str.ljust, line, widths)) for line in (names, *cells)]
    yield from (rule, f"|{lines[0]}|", rule, *(f"|{line}|" for line in lines[1:]))
    if cells:
        yield rule
    if len(rows) > most:
        yield f"only showing top {most} row{'' if most == 1 else 's'}"


def _cell(value: Any) -> str:
    return "NULL" if value is None else str(value)


class Echo:
    """Finds what the console sink printed in the log of the JVM, where all its output goes.

    The log stays open: when it is rotated, the JVM keeps writing into the renamed file.
    """

    def __init__(self, log: BinaryIO) -> None:
        self._log, self._rest = log, b""
        log.seek(0, os.SEEK_END)

    def new(self) -> Iterator[str]:
        """Return the lines since the last call."""
        *whole, self._rest = (self._rest + self._log.read()).split(b"\n")
        lines = (line.decode(errors="replace") for line in whole)
        return (line for line in lines if _PRINTED.fullmatch(line))


@cache
def echo(log: Path) -> None:
    """Print from now on, in a thread that ends with the driver."""
    printed = Echo(log.open("rb"))

    def work() -> None:
        while True:
            for line in printed.new():
                print(line, file=sys.stderr)  # noqa: T201 - that is the sink
            time.sleep(_LOOK_EVERY_S)

    threading.Thread(target=work, name="console", daemon=True).start()

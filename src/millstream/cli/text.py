"""Words, numbers and tables for a terminal, or plain and aligned for a pipe."""

from __future__ import annotations

import os
import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from millstream.model.sketch import kind_of, without_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import JustifyMethod
    from rich.table import Table

    from millstream.errors import MillstreamError
    from millstream.views.json_text import FaultView

NOTHING = "-"
MORE = "\n  more: millstream explain CODE"
_MARGIN = "  "
_TO = " – "  # noqa: RUF001 - a dash, as between two times
_NUMBER = re.compile(r"-?[\d ]*\d(\.\d+)?(e[+-]?\d+)?( m?s)?")


def is_terminal() -> bool:
    """Whether a person looks at a screen that can be redrawn."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Set a table as plain lines; columns of numbers are set to the right.

    >>> aligned(["name", "rows"], [["a", "10"], ["bcdef", "7"]])
    ['  name   rows', '  a        10', '  bcdef     7']
    """
    lines = [list(columns), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    right = numeric(columns, rows)
    aligned_lines = []
    for line in lines:
        cells = (
            text.rjust(width) if i in right else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        aligned_lines.append((_MARGIN + _MARGIN.join(cells)).rstrip())
    return aligned_lines


def numeric(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> set[int]:
    """Return which columns hold numbers, with or without a unit."""
    return {
        i
        for i in range(len(columns))
        if rows
        and all(row[i] == NOTHING or row[i][:1].isdigit() for row in rows)
        # A timestamp is no number.
        and not any(":" in row[i] or row[i].count("-") > 1 for row in rows)
    }


def rich_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, folds_last_only: bool = False
) -> Table:
    """Set a table for a terminal, its columns folded where it is too narrow."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 0, 0, 2), header_style="bold")
    right = numeric(columns, rows)
    for i, name in enumerate(columns):
        justify: JustifyMethod = "right" if i in right else "left"
        stays = folds_last_only and i < len(columns) - 1
        table.add_column(Text(name), justify=justify, overflow="fold", no_wrap=stays)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: as the terminal can, or plainly into a pipe."""
    if is_terminal():
        from rich.console import Console

        Console().print(rich_table(columns, rows))
    else:
        print("\n".join(aligned(columns, rows)))


def cell(value: Any) -> str:
    """Write one value of a row, as Spark shows it; a window as from when to when.

    Of a sketch, the estimates are written, and their bounds.

    >>> cell(None), cell(True), cell({"a": [1, None], "b": "x"})
    ('NULL', 'true', '{a: [1, NULL], b: x}')
    >>> cell(datetime(2026, 1, 31, 12, 0, 0, 500000, tzinfo=UTC))
    '2026-01-31 12:00:00.5'
    >>> hours = [datetime(2013, 1, 1, hour, tzinfo=UTC) for hour in (10, 11)]
    >>> print(cell({"start": hours[0], "end": hours[1]}).replace(_TO, " to "))
    2013-01-01 10:00 to 11:00
    >>> cell({"estimate": 4909, "lower": 4800, "upper": 5020, "theta": b"..."})
    '4909 (4800 to 5020)'
    """
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return _struct(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(cell(item) for item in value)}]"
    return _scalar(value)


def _struct(value: dict[str, Any]) -> str:
    match value:
        case {"start": datetime() as start, "end": datetime() as end, **rest} if not rest:
            return f"{_short(start)}{_TO}{_short(end).removeprefix(f'{start:%Y-%m-%d} ')}"
    if kind_of(value):
        return _sketch(value)
    value = dict(without_bytes(value))
    return f"{{{', '.join(f'{cell(key)}: {cell(item)}' for key, item in value.items())}}}"


def _sketch(value: dict[str, Any]) -> str:
    match value:
        case {"quantiles": points}:
            return ", ".join(f"p{100 * point['rank']:g} {_within(point)}" for point in points)
        case {"top": points}:
            return ", ".join(f"{cell(point['item'])} {_within(point)}" for point in points)
    return _within(value)


def _within(point: dict[str, Any]) -> str:
    """Write an estimate, with its bounds if it is not exact."""
    found, lower, upper = (_rounded(point[name]) for name in ("estimate", "lower", "upper"))
    return found if lower == upper else f"{found} ({lower} to {upper})"


def _rounded(number: float) -> str:
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def _scalar(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case datetime():
            return _full(value)
        case bytes() | bytearray():
            return f"X'{value.hex().upper()}'"
    return str(value)


def _full(at: datetime) -> str:
    at = at.astimezone(UTC) if at.tzinfo else at
    return f"{at:%Y-%m-%d %H:%M:%S}{f'.{at:%f}'.rstrip('0') if at.microsecond else ''}"


def _short(at: datetime) -> str:
    return _full(at).removesuffix(":00")


def report_line(subject: str, fact: str) -> str:
    """Write a step of the start-up."""
    return f"{'…' if fact.startswith('fetch') else '✓'} {subject:<9} {fact}"


def format_fault(fault: FaultView) -> str:
    """Write a fault as errors are written everywhere."""
    place = f"\n  at:  {fault.file}:{fault.line}" if fault.file else ""
    return f"[{fault.code}] {fault.what}{place}\n  fix: {fault.fix}"


def with_more(error: MillstreamError) -> str:
    """Write an error as the last word of a command: with where to read more."""
    return f"{error}{MORE.replace('CODE', error.code)}"


def grouped(number: float) -> str:
    """Write a number so that its size is seen.

    >>> grouped(1234567), grouped(3.4)
    ('1 234 567', '3')
    """
    return f"{round(number):,}".replace(",", " ")


def counted(number: int, noun: str) -> str:
    """Write how many there are of something.

    >>> counted(1, "batch"), counted(2000, "row")
    ('1 batch', '2 000 rows')
    """
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{grouped(number)} {noun if number == 1 else plural}"


def rate(per_second: float | None) -> str:
    """Write a rate.

    >>> rate(None), rate(0.25), rate(1234.5)
    ('-', '0.2', '1 234')
    """
    if per_second is None:
        return NOTHING
    return f"{per_second:.1f}" if 0 < per_second < 10 else grouped(per_second)


def size(length: float) -> str:
    """Write a number of bytes.

    >>> size(999), size(1_540_000), size(-2_000)
    ('999 B', '1.5 MB', '-2.0 kB')
    """
    for unit, one in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(length) >= one:
            return f"{length / one:.1f} {unit}"
    return f"{length:.0f} B"


def took(milliseconds: int | None) -> str:
    """Write how long a batch took.

    >>> took(240), took(12_345)
    ('240 ms', '12.3 s')
    """
    if milliseconds is None:
        return NOTHING
    return f"{milliseconds} ms" if milliseconds < 10_000 else f"{milliseconds / 1000:.1f} s"


def moment(at: datetime | None) -> str:
    """Write a moment: the time if it is of today, else the date too."""
    if at is None:
        return NOTHING
    at = at.astimezone(UTC)
    return f"{at:%H:%M:%S}" if at.date() == datetime.now(UTC).date() else f"{at:%Y-%m-%d %H:%M}"


def exact_moment(at: datetime) -> str:
    """Write a moment to its last digit, with the date unless it is of today.

    >>> exact_moment(datetime(2026, 1, 1, 12, 7, 0, 1000, tzinfo=UTC))
    '2026-01-01 12:07:00.001'
    """
    at = at.astimezone(UTC)
    is_today = at.date() == datetime.now(UTC).date()
    written = f"{at:%H:%M:%S.%f}" if is_today else f"{at:%Y-%m-%d %H:%M:%S.%f}"
    return written.removesuffix(".000000").removesuffix("000")


def verdicts(counts: Mapping[str, int]) -> str:
    """Write how many rows were quarantined, by verdict.

    >>> verdicts({"late": 4, "malformed": 2}), verdicts({})
    ('4 late · 2 malformed', 'ok')
    """
    return " · ".join(f"{grouped(n)} {why}" for why, n in counts.items()) or "ok"


def measured(metrics: Mapping[str, float | None]) -> str:
    """Write metrics.

    >>> measured({"Accuracy": 0.91253, "F1": None})
    'Accuracy 0.9125 · F1 -'
    """
    shown = (
        f"{name} {'-' if value is None else format(value, '.4f')}"
        for name, value in metrics.items()
    )
    return " · ".join(shown)

"""By which separator, quote and header lines of a sample are CSV."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from millstream.landing.decode.csv_grammar import Grammar
from millstream.landing.proposal.column_type import common_type, typed
from millstream.model.codec import CsvOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

_SEPARATORS = (",", ";", "\t", "|")
_QUOTES = (('"', None), ("'", None), ('"', "\\"), ("", None))
_NULLS = ("NULL", "null", "NA", "N/A", "n/a", r"\N", "None", "nan", "NaN", "-", "?")
_HEAD = re.compile(r"[@#]?[^\W\d][\w .:@/()%#-]*")


class Dialect(NamedTuple):
    """How lines are cut, and the cells that they have."""

    options: CsvOptions
    names: list[str]
    """Of the columns: those of the header, if there is one."""
    rows: list[list[str]]


def dialect_of(files: Sequence[Sequence[str]]) -> Dialect | None:
    """Find the dialect by which most lines have as many fields as each other, more than one."""
    lines = [line for file in files for line in file]
    best: tuple[int, CsvOptions, list[list[str]]] | None = None
    for sep, (quote, escape) in product(_SEPARATORS, _QUOTES):
        if quote == "'" and not any(f"{sep}'" in line or line[:1] == "'" for line in lines):
            continue
        if escape and not any(escape in line for line in lines):
            continue
        for multiline in (False, True) if quote else (False,):
            options = CsvOptions(sep=sep, quote=quote, escape=escape, multiline=multiline)
            rows, used = _cut(lines, options)
            if used * 2 > len(lines) and (best is None or used > best[0]):
                best = used, options, rows
    return _with_header(best[1], best[2], files) if best and best[2] else None


def _cut(lines: Sequence[str], options: CsvOptions) -> tuple[list[list[str]], int]:
    """Cut lines; return the rows of the usual width, and of how many lines they are made."""
    grammar = Grammar(options)
    records = _joined(lines, grammar) if options.multiline else [(line, 1) for line in lines]
    found = []
    for record, count in records:
        if not options.quote or grammar.is_whole(record):
            cells = next(csv.reader(record.splitlines(keepends=True), grammar.dialect), [])
            found.append((cells, count))
    widths = [len(cells) for cells, _ in found]
    usual = max(set(widths), key=widths.count, default=1)
    kept = [(cells, count) for cells, count in found if len(cells) == usual > 1]
    return [cells for cells, _ in kept], sum(count for _, count in kept)


def _joined(lines: Sequence[str], grammar: Grammar) -> list[tuple[str, int]]:
    """Join the lines of records with newlines in quotes."""
    found: list[tuple[str, int]] = []
    held: list[str] = []
    for line in lines:
        held.append(line)
        if not grammar.is_open("\n".join(held)):
            found.append(("\n".join(held), len(held)))
            held = []
    return found + [(line, 1) for line in held]


def _with_header(
    options: CsvOptions, rows: list[list[str]], files: Sequence[Sequence[str]]
) -> Dialect:
    """Find out whether the first line of each file names the columns."""
    first = rows[0]
    is_repeated = len(files) > 1 and len({file[0] for file in files if file}) == 1
    rest = [row for row in rows[1:] if not (is_repeated and row == first)]
    is_named = len({*first}) == len(first) and all(_HEAD.fullmatch(cell) for cell in first)
    kinds = [common_type(typed(row[n]) for row in rest) for n in range(len(first))]
    is_other = any(kind != "STRING" for kind in kinds) or is_repeated
    has_header = bool(rest) and is_named and is_other
    names = first if has_header else [f"c{n}" for n in range(1, len(first) + 1)]
    body = rest if has_header else rows
    return Dialect(replace(options, header=has_header, null_value=_null_value(body)), names, body)


def _null_value(rows: Sequence[Sequence[str]]) -> str:
    """Find the word without which a column has a narrower type than text."""
    for column in zip(*rows, strict=True):
        for word in _NULLS:
            others = [cell for cell in column if cell not in (word, "")]
            if word in column and others and common_type(map(typed, others)) != "STRING":
                return word
    return ""

"""What a line of CSV may be, by RFC 4180: a quote stands around a whole field, or is doubled."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from millstream.model.ddl import schema_fault

if TYPE_CHECKING:
    import _csv

    from millstream.model.codec import CsvOptions


class Grammar:
    """The rules of one source's files: its separator, quote and escape."""

    def __init__(self, options: CsvOptions) -> None:
        self.dialect = _dialect(options)
        self.quote, self.has_escape = options.quote, options.escape is not None
        sep, quote, escape = (re.escape(c or "") for c in (options.sep, self.quote, options.escape))
        escaped = f"|{escape}." if escape else ""
        # Possessive throughout: a line of many quotes takes no longer than any other.
        bare = f"(?:[^{sep}{quote}{escape}\r\n]++{escaped})*+"
        opened = f"{quote}(?:[^{quote}{escape}]++|{quote}{quote}{escaped})*+" if quote else "(?!)"
        cell = f"(?:{opened}{quote}|{bare})"
        cells = f"(?:{cell}{sep})*+"
        self._bare = re.compile(bare, re.DOTALL)
        self._quoted = re.compile(opened + quote, re.DOTALL)
        self._cells = re.compile(cells, re.DOTALL)
        self._whole = re.compile(f"{cells}{cell}[\r\n]*+", re.DOTALL)
        self._open = re.compile(f"{cells}{opened}(?:{escape})?", re.DOTALL)

    def is_whole(self, line: str) -> bool:
        """Whether a line with a quote in it is a record."""
        return self._whole.fullmatch(line) is not None

    def is_open(self, line: str) -> bool:
        """Whether a line ends within a quoted field."""
        return self._open.fullmatch(line) is not None

    def fault(self, line: str) -> tuple[str, int]:
        """Say what is wrong with a line that is no record, and with which of its fields."""
        first = self._cells.match(line)
        assert first is not None
        before, rest = line[: first.end()], line[first.end() :]
        column = max(len(next(csv.reader((before,), self.dialect), [])) - 1, 0)
        bare = self._bare.match(rest)
        assert bare is not None
        match rest[bare.end() : bare.end() + 1]:
            case "\r" | "\n":
                return "a line break outside quotes", column
            case self.quote if bare.end():
                return "a quote inside an unquoted field", column
            case self.quote if self._quoted.match(rest):
                return "text after a closing quote", column
            case self.quote:
                return "a quoted field is not closed", column
            case _:
                return "nothing after the escape character", column


def _dialect(options: CsvOptions) -> _csv.Dialect:
    marks = {"sep": options.sep, "quote": options.quote or None, "escape": options.escape}
    for name, mark in marks.items():
        if mark is not None and len(mark) != 1:
            what = f"CSV option {name}={mark!r} is not one character"
            raise schema_fault(what, fix="give one character, such as ';'")
    return csv.reader(
        (),
        delimiter=options.sep,
        quotechar=options.quote or None,
        quoting=csv.QUOTE_MINIMAL if options.quote else csv.QUOTE_NONE,
        escapechar=options.escape,
        strict=True,
    ).dialect

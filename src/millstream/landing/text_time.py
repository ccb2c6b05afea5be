"""Event times that are read from texts put together: those of usual forms are read in Arrow.

A form is of one width, so that whole columns are read at once. Of other texts nothing is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.landing.decode.column import arrow_type
from millstream.landing.decode.time_pattern import TimePattern, width_of
from millstream.landing.event_time import PART, column_at, path_of
from millstream.model.data_type import Atom
from millstream.model.time_format import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.model.schema import Schema

    Text = Callable[[pa.RecordBatch], Any]
    """Computes a column of texts, or the one text of all rows."""

_TOKEN = re.compile(
    rf"\s*(?:(?P<name>{PART})|'(?P<text>[^'\\]*)'|(?P<mark>\|\||[(),.]))\s*", re.ASCII
)
_END = ("mark", "")
_FUNCTIONS = ("to_timestamp", "try_to_timestamp", "timestamp")
_SHOWN = (Atom.STRING, Atom.DATE, Atom.TINYINT, Atom.SMALLINT, Atom.INT, Atom.BIGINT)
_SURE = "yMdHmsSZXx'"
"""The letters of patterns that are read in Arrow."""


class _OtherError(ValueError):
    """An expression is of another kind."""


@dataclass(frozen=True, slots=True)
class TextTime:
    """An event time that is read from a text, by a pattern or as a text is cast."""

    text: Text
    pattern: str | None

    @staticmethod
    def of(expression: str, schema: Schema) -> TextTime | None:
        """Read an expression; None if it is of another kind."""
        try:
            return _TextParser(expression, schema).time()
        except _OtherError:
            return None

    def compute(self, batch: pa.RecordBatch) -> tuple[Any, Any]:
        """Return times, and the rows for which they are certain: Spark would give the same."""
        found = self.text(batch)
        column = found if isinstance(found, pa.Array) else pa.repeat(found, batch.num_rows)
        nulls = column.is_null().to_numpy(zero_copy_only=False)
        micros, certain = np.zeros(len(column), np.int64), nulls.copy()
        for pattern in self._patterns(column):
            if certain.all():
                break
            times, right = pattern.column(column)
            new = right & ~certain
            micros[new] = times[new]
            certain |= new
        if self.pattern is None:
            # A pattern takes no notice of case, a cast does.
            certain &= ~_has_small_letters(column)
        times = pa.array(micros, mask=nulls | ~certain).cast(arrow_type(Atom.TIMESTAMP))
        is_certain = pa.array(certain)
        return times, is_certain if certain.all() else pc.or_(is_certain, _is_no_time(column))

    def _patterns(self, column: Any) -> Iterator[TimePattern]:
        if self.pattern is not None:
            yield _pattern(self.pattern)
            return
        offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1]
        for width in np.unique(np.diff(offsets)).tolist():
            yield from _cast_patterns(width)


class _TextParser:
    """Reads an expression, token by token."""

    def __init__(self, expression: str, schema: Schema) -> None:
        self._schema, self._tokens = schema, [_END]
        self._has_values, self._joins = False, False
        while expression:
            token = _TOKEN.match(expression)
            if token is None or token.lastgroup is None:
                raise _OtherError
            self._tokens.insert(-1, (token.lastgroup, token[token.lastgroup]))
            expression = expression[token.end() :]

    def time(self) -> TextTime:
        """Read a whole expression."""
        function = self._next("name").lower()
        self._mark("(")
        text, pattern = self._texts(), None
        if function == "cast":
            if [self._next("name").lower() for _ in range(2)] != ["as", "timestamp"]:
                raise _OtherError
        elif function not in _FUNCTIONS:
            raise _OtherError
        elif self._has(",") and function != "timestamp":
            pattern = self._next("text")
            if not _is_sure(pattern):
                raise _OtherError
        self._mark(")")
        # Alone, a value that is no text is converted, not read.
        if self._tokens != [_END] or (self._has_values and not self._joins):
            raise _OtherError
        return TextTime(text, pattern)

    def _texts(self) -> Text:
        """Read texts with `||` between them."""
        parts = [self._one_text()]
        while self._has("||"):
            parts.append(self._one_text())
        return parts[0] if len(parts) == 1 else self._joined(parts)

    def _one_text(self) -> Text:
        kind, text = self._tokens[0]
        if kind == "text":
            literal = pa.scalar(self._next("text"))
            return lambda _: literal
        if self._has("("):
            inner = self._texts()
            self._mark(")")
            return inner
        if (kind, text.lower()) == ("name", "concat") and self._tokens[1] == ("mark", "("):
            return self._concat()
        return self._path()

    def _concat(self) -> Text:
        self._next("name")
        self._mark("(")
        parts = [self._texts()]
        while self._has(","):
            parts.append(self._texts())
        self._mark(")")
        return self._joined(parts)

    def _joined(self, parts: Sequence[Text]) -> Text:
        """Put texts together; it is null if one of them is."""
        self._joins = True
        nothing = pa.scalar("")

        def joined(batch: pa.RecordBatch) -> Any:
            return pc.binary_join_element_wise(*(part(batch) for part in parts), nothing)

        return joined

    def _path(self) -> Text:
        path = self._next("name")
        while self._has("."):
            path += "." + self._next("name")
        names, kind = path_of(path, self._schema)
        if kind not in _SHOWN:
            raise _OtherError
        column = column_at(names)
        if kind is Atom.STRING:
            return column
        self._has_values = True
        return lambda batch: column(batch).cast(pa.string())

    def _has(self, mark: str) -> bool:
        """Read a mark if it is next."""
        if self._tokens[0] != ("mark", mark):
            return False
        del self._tokens[0]
        return True

    def _mark(self, mark: str) -> None:
        if not self._has(mark):
            raise _OtherError

    def _next(self, kind: str) -> str:
        found, text = self._tokens[0]
        if found != kind:
            raise _OtherError
        del self._tokens[0]
        return text


def _is_sure(pattern: str) -> bool:
    """Whether a pattern is of one width, and has days and no names."""
    try:
        parts = parts_of(pattern)
    except ValueError:
        return False
    letters = {part.letter: part.count for part in parts}
    # Spark takes digits before a fraction for those of the year.
    before = {part.letter: left.letter for left, part in pairwise(parts)}
    return (
        set(letters) <= set(_SURE)
        and letters.keys() >= {*"yMd"}
        and letters["y"] == 4
        and letters["M"] == 2
        and before.get("S", "'") == "'"
        and width_of(pattern) is not None
    )


@cache
def _pattern(text: str) -> TimePattern:
    return TimePattern(text)


@cache
def _cast_patterns(width: int) -> tuple[TimePattern, ...]:
    """Return the forms of texts of a width that Spark casts to a time."""
    clocks = ["HH:mm:ss", *(f"HH:mm:ss.{'S' * digits}" for digits in range(1, 10))]
    moments = product(("", "'Z'", "xxx"), (" ", "'T'"), clocks)
    zoned = (f"yyyy-MM-dd{sep}{clock}{zone}" for zone, sep, clock in moments)
    forms = ("yyyy-MM-dd", "yyyy-MM-dd HH:mm", "yyyy-MM-dd'T'HH:mm", *zoned)
    return tuple(_pattern(form) for form in forms if width_of(form) == width)


def _is_no_time(column: Any) -> Any:
    """Whether a text has no digit, and so no year."""
    return pc.coalesce(pc.invert(pc.match_substring_regex(column, "[0-9]")), pa.scalar(value=True))


def _has_small_letters(column: Any) -> Any:
    data = column.buffers()[2]
    raw = np.frombuffer(data if data is not None else b"", np.uint8)
    if not (raw >= ord("a")).any():
        return np.zeros(len(column), bool)
    found: Any = pc.coalesce(pc.match_substring_regex(column, "[a-z]"), pa.scalar(value=False))
    return found.to_numpy(zero_copy_only=False)

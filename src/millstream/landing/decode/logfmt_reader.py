"""How lines of key=value pairs are read: logfmt."""

from __future__ import annotations

import json
import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from millstream.landing.decode.cell import cell_reader, cell_type
from millstream.landing.decode.column import text_leaf
from millstream.landing.decode.fault import leaf_fault, shown
from millstream.landing.decode.reader import MalformedError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from millstream.landing.decode.time_column import TimeColumn
    from millstream.model.schema import Schema

_PAIR = re.compile(
    r"""([^\s="]+)(?:(=)(?:"((?:[^"\\]|\\.)*+)"|([^\s"]*)))?(?=\s|\Z)|(\S+)""",
    re.ASCII | re.DOTALL,
)


class LogfmtReader:
    """Reads lines such as `at=2026-11-18T14:07:18Z level=info msg="a b"`."""

    is_text = True
    leaf = staticmethod(text_leaf)

    def __init__(self, schema: Schema, times: Mapping[str, TimeColumn]) -> None:
        self._times, self._names = times, schema.names
        self._kinds = [cell_type(field, "logfmt") for field in schema.fields]
        self._cells = [cell_reader(field) for field in schema.fields]
        self.blank = [None] * len(schema.fields)
        self.getters = [itemgetter(i) for i in range(len(schema.fields))]

    def read(self, raw: bytes) -> list[Any]:
        """Read one line."""
        pairs = logfmt_pairs(raw.decode(), self._names)
        get = pairs.get
        return [read(get(name)) for read, name in zip(self._cells, self._names, strict=True)]

    def fault(self, raw: bytes) -> str | None:
        """Return what is wrong, and in which column."""
        try:
            values = self.read(raw)
        except MalformedError as error:
            return str(error)
        pairs = logfmt_pairs(raw.decode(), self._names)
        for name, kind, value in zip(self._names, self._kinds, values, strict=True):
            if value is None or isinstance(value, bytes):
                continue
            place = f"in column {name!r}"
            if name in self._times:
                found = self._times[name].fault(value, place)
            else:
                found = leaf_fault(kind, value, place, text=pairs[name])
            if found:
                return found
        return None


def logfmt_pairs(line: str, flags: Collection[str] = ()) -> dict[str, str]:
    """Read all pairs of a line; of a key that is there twice, the last one counts.

    Args:
        line: The record.
        flags: The words that may be alone, and are then true.

    Raises:
        MalformedError: It is none.
    """
    pairs: dict[str, str] = {}
    for key, equals, quoted, bare, stray in _PAIR.findall(line):
        if stray or not (equals or key in flags):
            raise MalformedError(_reason(stray, key))
        pairs[key] = _unescaped(quoted) if quoted else bare if equals else "true"
    return pairs


def _unescaped(quoted: str) -> str:
    if "\\" not in quoted:
        return quoted
    try:
        return str(json.loads(f'"{quoted}"', strict=False))
    except ValueError:
        reason = f"not logfmt: an escape is unknown, in {shown(quoted)!r}"
        raise MalformedError(reason) from None


def _reason(stray: str, word: str) -> str:
    if word:
        return f"not logfmt: {shown(word)!r} is no key=value, and no column"
    if '="' in stray and stray.count('"') == 1:
        return f"not logfmt: a quote is not closed, near {shown(stray)!r}"
    return f'not logfmt: expected key=value or key="value", got {shown(stray)!r}'

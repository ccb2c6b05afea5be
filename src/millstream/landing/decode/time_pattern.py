"""Texts that are read by a pattern of Spark's: whole columns at once where all are of one width."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pyarrow as pa

from millstream.model.time_format import parts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.model.time_format import Part

_EPOCH = date(1970, 1, 1).toordinal()
_DAY_S, _US = 86_400, 1_000_000
_GREATEST_OFFSET_S = 18 * 3600
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_KEPT = 10_000
_PIVOT = 2000
"""A year of two digits is in the century that begins here."""

_NUMBERS = "yMdHhms"
_OFFSETS = ("", "[+-][0-9]{2}(?:[0-9]{2})?", "[+-][0-9]{4}", "[+-][0-9]{2}:[0-9]{2}")
_WIDTHS = {"Z": 5, "XX": 5, "xx": 5, "XXX": 6, "xxx": 6, "a": 2}
_MOST = {"M": 12, "H": 23, "h": 12, "m": 59, "s": 59}
_LEAST = {"M": 1, "d": 1, "h": 1}
_SCALE_S = {"H": 3600, "h": 3600, "m": 60, "s": 1}


class TimePattern:
    """One pattern: reads a text alone, or as many as can be told apart by width."""

    def __init__(self, text: str) -> None:
        self._parts = parts_of(text)
        self._regex = re.compile(_regex(self._parts), re.IGNORECASE | re.ASCII)
        self._widths = _widths(self._parts)
        # Texts without seconds come again and again.
        self._read = lru_cache(_KEPT)(self._read_text)

    def one(self, value: Any) -> int:
        """Read a text as microseconds since 1970.

        Raises:
            ValueError: It is not of this pattern, or no such time exists.
        """
        micros = self._read(value) if isinstance(value, str) else None
        if micros is None:
            raise ValueError(value)
        return micros

    def _read_text(self, text: str) -> int | None:
        found = self._regex.fullmatch(text)
        if found is None:
            return None
        try:
            return _micros({name: t for name, t in found.groupdict().items() if t is not None})
        except ValueError:
            return None

    def many(self, values: Sequence[Any]) -> tuple[Any, Any]:
        """Read texts; return microseconds, and whether each could be read this way."""
        try:
            return self.column(pa.array(values, pa.string()))
        except (pa.ArrowException, TypeError):
            return np.zeros(len(values), np.int64), np.zeros(len(values), bool)

    def column(self, column: Any) -> tuple[Any, Any]:
        """Read a column of texts, as `many` does."""
        micros, right = np.zeros(len(column), np.int64), np.zeros(len(column), bool)
        if self._widths is not None:
            rows, table = _of_width(column, sum(self._widths))
            found, fits = _read_table(table, self._parts, self._widths)
            micros[rows], right[rows] = found, fits
        return micros, right


def width_of(pattern: str) -> int | None:
    """Return how many bytes a text of a pattern has; None if that varies."""
    widths = _widths(parts_of(pattern))
    return None if widths is None else sum(widths)


def _regex(parts: Sequence[Part]) -> str:
    found = ""
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        match part.letter:
            case "'":
                found += re.escape(part.text)
            case "[":
                found += "(?:"
            case "]":
                found += ")?+"
            case letter:
                # A number of any width leaves as many digits as the next one needs, and no more.
                leaves = following and following.letter in _NUMBERS and following.count > 1
                text = _field_regex(part)
                text += "+" if text.endswith("}") and not leaves else ""
                found += f"(?P<{letter}{part.count}>{text})"
    return found


def _field_regex(part: Part) -> str:
    letter, count = part.letter, part.count
    if letter in _NUMBERS and not _is_name(part):
        varies = count == 1 or (letter == "y" and count == 3)
        return f"[0-9]{{{count},19}}" if varies else f"[0-9]{{{count}}}"
    return {
        "S": f"[0-9]{{1,{count}}}",
        "a": "(?:am|pm)",
        "Z": "(?:[+-][0-9]{4})",
        "X": f"(?:Z|{_OFFSETS[min(count, 3)]})",
        "x": f"(?:{_OFFSETS[min(count, 3)]})",
        "V": "(?:[a-z0-9/_+:-]+)",
        "M": _any_of(_MONTHS, part),
        "E": _any_of(_DAYS, part),
    }[letter]


def _any_of(names: Sequence[str], part: Part) -> str:
    return f"(?:{'|'.join(name if part.count == 4 else name[:3] for name in names)})"


def _is_name(part: Part) -> bool:
    return part.letter == "E" or (part.letter == "M" and part.count > 2)


def _micros(fields: dict[str, str]) -> int:
    found: dict[str, int] = {}
    zone = ""
    for name, text in fields.items():
        letter, count = name[0], int(name[1:])
        if letter in "ZXxV":
            zone = text
        elif letter == "S":
            found[letter] = int(text.ljust(6, "0")[:6])
        elif letter == "a":
            found[letter] = text.lower() == "pm"
        elif letter == "E" or (letter == "M" and count > 2):
            names = _MONTHS if letter == "M" else _DAYS
            found[letter] = [n[:3] for n in names].index(text[:3].lower()) + (letter == "M")
        else:
            found[letter] = int(text) + (_PIVOT if name == "y2" else 0)
    for letter, value in found.items():
        if not _LEAST.get(letter, 0) <= value <= _MOST.get(letter, value):
            raise ValueError(value)
    hour = found.get("H", found.get("h", 0) % 12 + 12 * found.get("a", 0))
    moment = datetime(  # noqa: DTZ001 - the zone comes last
        found.get("y", 1970),
        found.get("M", 1),
        found.get("d", 1),
        hour,
        found.get("m", 0),
        found.get("s", 0),
        found.get("S", 0),
    )
    if found.get("E", moment.weekday()) != moment.weekday():
        raise ValueError(fields)
    local = (moment.toordinal() - _EPOCH) * _DAY_S * _US + _time_us(moment)
    return local - _offset_s(zone, moment) * _US


def _time_us(moment: datetime) -> int:
    seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
    return seconds * _US + moment.microsecond


def _offset_s(zone: str, moment: datetime) -> int:
    """Return how far a zone is ahead of UTC, in seconds, at a moment of its own clock."""
    if not zone or zone in "Zz":
        return 0
    if zone[0] not in "+-":
        offset = _zone(zone.lower()).utcoffset(moment)
        return 0 if offset is None else round(offset / timedelta(seconds=1))
    digits = zone[1:].replace(":", "").ljust(4, "0")
    if not digits.isdigit() or int(digits[2:4]) >= 60:
        raise ValueError(zone)
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60
    if seconds > _GREATEST_OFFSET_S:
        raise ValueError(zone)
    return -seconds if zone[0] == "-" else seconds


@cache
def _zone(name: str) -> ZoneInfo:
    known = {zone.lower(): zone for zone in available_timezones()}
    if name not in known:
        raise ValueError(name)
    return ZoneInfo(known[name])


def _widths(parts: Sequence[Part]) -> list[int] | None:
    widths = [_width(part) for part in parts]
    return None if None in widths else [width for width in widths if width is not None]


def _width(part: Part) -> int | None:
    """Return how many characters a part has; of one that varies, in its usual form."""
    letter, count = part.letter, part.count
    if letter == "'":
        return len(part.text) if part.text.isascii() else None
    if _is_name(part):
        return 3 if count < 4 else None
    if letter in _NUMBERS:
        return count if count in (2, 4) else None
    if letter == "S":
        return count
    return _WIDTHS.get("Z" if letter == "Z" else part.text)


def _of_width(column: Any, width: int) -> tuple[Any, Any]:
    """Return the rows that have so many bytes, and an array for each of these bytes."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1]
    data = column.buffers()[2]
    raw = np.frombuffer(data if data is not None else b"", np.uint8)
    rows = np.flatnonzero(np.diff(offsets) == width)
    if len(rows) == len(column):
        table = raw[offsets[0] : offsets[-1]].reshape(len(column), width)
    else:
        table = raw[offsets[:-1][rows][:, None] + np.arange(width)]
    return rows, np.ascontiguousarray(table.T)


def _read_table(table: Any, parts: Sequence[Part], widths: Sequence[int]) -> tuple[Any, Any]:
    """Read texts, field by field; a byte that is not ASCII fits nothing."""
    found: dict[str, Any] = {}
    right = np.ones(table.shape[1], bool)
    zone: Any = 0
    start = 0
    for part, width in zip(parts, widths, strict=True):
        cells = table[start : start + width]
        start += width
        if part.letter == "'":
            text = np.frombuffer(part.text.lower().encode(), np.uint8)
            right &= (_lower(cells) == text[:, None]).all(axis=0)
        elif part.letter in "ZXx":
            zone = _zone_column(cells, right)
        else:
            found[part.letter] = _field_column(part, cells, right)
    return _micros_column(found, zone, right), right


def _field_column(part: Part, cells: Any, right: Any) -> Any:
    letter = part.letter
    if _is_name(part):
        names = _MONTHS if letter == "M" else _DAYS
        value = _name_column([name[:3] for name in names], cells, right) + (letter == "M")
    elif letter == "a":
        value = _name_column(["am", "pm"], cells, right)
    else:
        value = _digits(cells, right)
        value = value + _PIVOT if letter == "y" and part.count == 2 else value
        value = value * 10**6 // 10**part.count if letter == "S" else value
    right &= value >= _LEAST.get(letter, 0)
    if letter in _MOST:
        right &= value <= _MOST[letter]
    return value


def _micros_column(found: dict[str, Any], zone: Any, right: Any) -> Any:
    year, month, day = (
        found.get(letter, default) for letter, default in zip("yMd", (1970, 1, 1), strict=True)
    )
    days, fits = _days(year, month, day)
    right &= fits
    if "E" in found:
        right &= (days + 3) % 7 == found["E"]
    seconds = days * _DAY_S - zone
    if "h" in found or "a" in found:
        seconds = seconds + (found.get("h", 0) % 12 + 12 * found.get("a", 0)) * 3600
    for letter in "Hms":
        seconds = seconds + found.get(letter, 0) * _SCALE_S[letter]
    return seconds * _US + found.get("S", 0)


def _days(year: Any, month: Any, day: Any) -> tuple[Any, Any]:
    """Count days since 1970 in the Gregorian calendar; and say whether there is such a day."""
    years = (np.asarray(year) - 1970).astype("datetime64[Y]")
    first = years.astype("datetime64[M]") + (np.asarray(month) - 1)
    begin = first.astype("datetime64[D]").astype(np.int64)
    length = (first + 1).astype("datetime64[D]").astype(np.int64) - begin
    return begin + day - 1, (np.asarray(day) <= length) & (np.asarray(year) >= 1)


def _digits(cells: Any, right: Any) -> Any:
    digits = cells - np.uint8(48)
    right &= (digits <= 9).all(axis=0)
    value = digits[0].astype(np.int64)
    for digit in digits[1:]:
        value = value * 10 + digit
    return value


def _name_column(names: Sequence[str], cells: Any, right: Any) -> Any:
    codes = np.array([_code(np.frombuffer(name.encode(), np.uint8)[:, None])[0] for name in names])
    order = np.argsort(codes)
    found = _code(_lower(cells))
    place = np.minimum(np.searchsorted(codes[order], found), len(codes) - 1)
    right &= codes[order][place] == found
    return order[place]


def _code(cells: Any) -> Any:
    code = cells[0].astype(np.int64)
    for byte in cells[1:]:
        code = code * 256 + byte
    return code


def _lower(cells: Any) -> Any:
    return np.where((cells >= 65) & (cells <= 90), cells + np.uint8(32), cells)


def _zone_column(cells: Any, right: Any) -> Any:
    sign = cells[0]
    right &= (sign == ord("+")) | (sign == ord("-"))
    if len(cells) == _WIDTHS["XXX"]:
        right &= cells[3] == ord(":")
    hours, minutes = _digits(cells[1:3], right), _digits(cells[-2:], right)
    seconds = hours * 3600 + minutes * 60
    right &= (minutes < 60) & (seconds <= _GREATEST_OFFSET_S)
    return np.where(sign == ord("-"), -seconds, seconds)

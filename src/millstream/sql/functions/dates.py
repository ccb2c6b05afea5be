"""Functions of dates and moments; the time zone of the session is UTC, as in all our sessions."""

from __future__ import annotations

import re
from datetime import timedelta

from millstream.model.duration import parse_duration
from millstream.sql.cast import cast
from millstream.sql.function_call import Call, Function, from_template
from millstream.sql.scope import TypedSql
from millstream.sql.types import BIGINT, DATE, INT, STRING, TIMESTAMP, string_literal, struct

_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("quarter", "week", "hour", "minute", "second", "millisecond")},
}
_OF_DATES = ("year", "quarter", "month", "week")
_LETTERS = {
    "yyyy": "%Y", "yy": "%y", "MM": "%m", "M": "%-m", "MMM": "%b", "MMMM": "%B",
    "dd": "%d", "d": "%-d", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M", "m": "%-M",
    "ss": "%S", "s": "%-S", "SSS": "%g", "SSSSSS": "%f", "a": "%p", "E": "%a", "EEE": "%a",
    "EEEE": "%A", "DDD": "%j",
}  # fmt: skip
_PARTS = re.compile(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']")
"""Of a pattern: quoted text, the same letter several times, or anything else."""


def _part(text: str) -> Function:
    return from_template(f"CAST({text} AS INTEGER)", INT, DATE)


def _clock(text: str) -> Function:
    return from_template(f"CAST({text} AS INTEGER)", INT, TIMESTAMP)


def _date_trunc(call: Call) -> TypedSql:
    unit = _UNITS.get((call.text(0) or "").lower())
    if unit is None:
        call.refuse()
    moment = f"CAST({call.to(1, TIMESTAMP)} AS TIMESTAMP)"
    return TypedSql(f"CAST(date_trunc('{unit}', {moment}) AS TIMESTAMPTZ)", TIMESTAMP)


def _trunc(call: Call) -> TypedSql:
    unit = _UNITS.get((call.text(1) or "").lower())
    if unit not in _OF_DATES:
        call.refuse()
    return TypedSql(f"CAST(date_trunc('{unit}', {call.to(0, DATE)}) AS DATE)", DATE)


def _date_format(call: Call) -> TypedSql:
    pattern, parts = call.text(1), []
    if pattern is None or "''" in pattern or pattern.count("'") % 2:
        call.refuse("date_format with a pattern that is not written out, or with odd quotes")
    for part in _PARTS.finditer(pattern):
        text = part[0]
        if (text[0].isalpha() and text not in _LETTERS) or text in "[]{}#":
            call.refuse(f"date_format with {text!r}")
        parts.append(_LETTERS.get(text) or text.strip("'").replace("%", "%%"))
    moment = f"CAST({call.to(0, TIMESTAMP)} AS TIMESTAMP)"
    return TypedSql(f"strftime({moment}, {string_literal(''.join(parts))})", STRING)


def _converted(call: Call) -> TypedSql:
    wanted = {"to_date": DATE, "date": DATE}.get(call.name, TIMESTAMP)
    value = call.value(0)
    text = cast(value.text, value.type, wanted, literal=value.literal)
    return TypedSql(text, wanted) if text else call.refuse()


def _unix_timestamp(call: Call) -> TypedSql:
    """Return whole seconds since 1970: towards zero, unlike `unix_seconds`."""
    moment = call.expressions.to(call.of(0, "timestamp", "date"), TIMESTAMP, call.node)
    return TypedSql(f"(epoch_us({moment}) // 1000000)", BIGINT)


def _from_utc(call: Call) -> TypedSql:
    zone = call.text(1)
    if zone is None or not re.fullmatch(r"UTC|[A-Z]\w+(/\w+)+", zone):
        call.refuse()
    return TypedSql(f"CAST(timezone('{zone}', {call.to(0, TIMESTAMP)}) AS TIMESTAMPTZ)", TIMESTAMP)


def _window(call: Call) -> TypedSql:
    try:
        micros = parse_duration(call.text(1) or "") // timedelta(microseconds=1)
    except ValueError:
        call.refuse()
    at = f"epoch_us({call.of(0, 'timestamp').text})"
    start = f"({at} - (({at} % {micros}) + {micros}) % {micros})"
    text = f"{{'start': make_timestamptz({start}), 'end': make_timestamptz({start} + {micros})}}"
    return TypedSql(text, struct(("start", TIMESTAMP), ("end", TIMESTAMP)))


def _date_diff(call: Call) -> TypedSql:
    return TypedSql(f"CAST({call.to(0, DATE)} - {call.to(1, DATE)} AS INTEGER)", INT)


FUNCTIONS = {
    "year": _part("year({0})"),
    "quarter": _part("quarter({0})"),
    "month": _part("month({0})"),
    "weekofyear": _part("week({0})"),
    **dict.fromkeys(("day", "dayofmonth"), _part("day({0})")),
    "dayofyear": _part("dayofyear({0})"),
    "dayofweek": _part("dayofweek({0}) + 1"),
    "weekday": _part("isodow({0}) - 1"),
    "hour": _clock("hour(CAST({0} AS TIMESTAMP))"),
    "minute": _clock("minute(CAST({0} AS TIMESTAMP))"),
    "second": _clock("second(CAST({0} AS TIMESTAMP))"),
    **dict.fromkeys(("date_add", "dateadd"), from_template("({0} + {1})", DATE, DATE, INT)),
    "date_sub": from_template("({0} - {1})", DATE, DATE, INT),
    **dict.fromkeys(("datediff", "date_diff"), Function(_date_diff, 2, 2)),
    "add_months": from_template("CAST({0} + to_months({1}) AS DATE)", DATE, DATE, INT),
    "last_day": from_template("last_day({0})", DATE, DATE),
    "make_date": from_template("make_date({0}, {1}, {2})", DATE, INT, INT, INT),
    "unix_date": from_template("CAST({0} - DATE '1970-01-01' AS INTEGER)", INT, DATE),
    "date_trunc": Function(_date_trunc, 2, 2),
    "trunc": Function(_trunc, 2, 2),
    "date_format": Function(_date_format, 2, 2),
    **dict.fromkeys(("to_date", "to_timestamp", "date", "timestamp"), Function(_converted)),
    "unix_timestamp": Function(_unix_timestamp),
    "unix_seconds": from_template("floor_div(epoch_us({0}), 1000000)", BIGINT, TIMESTAMP),
    "unix_millis": from_template("floor_div(epoch_us({0}), 1000)", BIGINT, TIMESTAMP),
    "unix_micros": from_template("epoch_us({0})", BIGINT, TIMESTAMP),
    "timestamp_seconds": from_template("make_timestamptz({0} * 1000000)", TIMESTAMP, BIGINT),
    "timestamp_millis": from_template("make_timestamptz({0} * 1000)", TIMESTAMP, BIGINT),
    "timestamp_micros": from_template("make_timestamptz({0})", TIMESTAMP, BIGINT),
    "from_unixtime": from_template(
        "strftime(make_timestamp({0} * 1000000), '%Y-%m-%d %H:%M:%S')", STRING, BIGINT
    ),
    "from_utc_timestamp": Function(_from_utc, 2, 2),
    "window": Function(_window, 2, 2),
    "now": Function(lambda _: TypedSql("now()", TIMESTAMP), 0, 0),
    "current_timestamp": Function(lambda _: TypedSql("now()", TIMESTAMP), 0, 0),
    "current_date": Function(lambda _: TypedSql("current_date", DATE), 0, 0),
}
"""By their names in Spark."""

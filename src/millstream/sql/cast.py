"""How Spark in ANSI mode casts a value of one type to another, in DuckDB's SQL.

Where DuckDB would be more lenient (it rounds '1.5' to 2), the value is looked at first; where only
Spark knows the answer, the query is refused at the first such value (`UNSURE`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.sql.types import INTEGRAL

if TYPE_CHECKING:
    from millstream.sql.types import Type

UNSURE = "not translated: "
"""The prefix of the error for a value that Spark may accept and we cannot cast."""

_SPACE = r"[\x00-\x20\x7f]*"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_DOUBLE = rf"{_NUMBER}|(?i:nan|-?inf(?:inity)?)"
_DAY = r"\d{4}-\d{1,2}-\d{1,2}"
_TIME = r"\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d{1,6})?)?"
_ZONE = r" ?(?:Z|UTC|[+-]\d{2}:\d{2})?"

_FROM_STRING = {
    # How the value must look, what of it DuckDB gets, and what Spark may still accept.
    **dict.fromkeys(INTEGRAL, (r"[+-]?\d+", "{0}", None)),
    **dict.fromkeys(
        ("double", "float"), (_DOUBLE, "{0}", r"(?i)[+](inf|infinity)|[+-]?[\d.e+-]+[fd]")
    ),
    "decimal": (_NUMBER, "{0}", None),
    "date": (_DAY + "(?:[ T].*)?", "regexp_extract({0}, '" + _DAY + "')", r"[+-]?\d.*"),
    "timestamp": (f"{_DAY}(?:[ T]{_TIME}{_ZONE})?", "{0}", r"[+-]?\d.*|T.*"),
    "timestamp_ntz": (f"{_DAY}(?:[ T]{_TIME})?", "{0}", r"[+-]?\d.*|T.*"),
    "boolean": (
        "(?i)true|t|yes|y|1|false|f|no|n|0",
        "lower({0}) IN ('true', 't', 'yes', 'y', '1')",
        None,
    ),
}


def cast(  # noqa: PLR0911
    text: str, current: Type, wanted: Type, *, is_try: bool = False, literal: object = None
) -> str | None:
    """Write a cast; None if we know of no translation.

    Args:
        text: The value, in DuckDB's SQL.
        current: Its type.
        wanted: The type it gets.
        is_try: NULL for what cannot be cast, instead of an error.
        literal: The value, where it is one: then nothing has to be looked at row by row.
    """
    plain = f"{'TRY_' * is_try}CAST({text} AS {wanted.duck})"
    if current == wanted:
        return text
    if current.kind == "void":
        return plain
    if current.kind == "string" and wanted.kind in _FROM_STRING:
        form = _FROM_STRING[wanted.kind][0]
        if isinstance(literal, str) and wanted.kind != "boolean" and re.fullmatch(form, literal):
            day = re.match(_DAY, literal)
            return f"CAST('{day[0]}' AS DATE)" if day and wanted.kind == "date" else plain
        return _from_string(text, wanted, is_try=is_try)
    if wanted.kind == "string":
        return _to_string(text, current)
    if current.is_numeric and wanted.is_numeric:
        return _number(text, current, wanted, is_try=is_try)
    if (current.kind, wanted.kind) == ("timestamp", "bigint"):
        return f"CAST(floor_div(epoch_us({text}), 1000000) AS BIGINT)"
    if current.kind in INTEGRAL and wanted.kind == "timestamp":
        return f"make_timestamptz(CAST({text} AS BIGINT) * 1000000)"
    return plain if _is_alike(current, wanted) else None


def _is_alike(current: Type, wanted: Type) -> bool:
    """Return whether DuckDB casts as Spark does."""
    if current.kind == wanted.kind and current.parts and len(current.parts) == len(wanted.parts):
        pairs = zip(current.parts, wanted.parts, strict=True)
        return all(
            a == b and (one == other or one.kind == "void" or _is_widened(one, other))
            for (a, one), (b, other) in pairs
        )
    times = ("date", "timestamp", "timestamp_ntz")
    return (current.kind in times and wanted.kind in times) or (
        "boolean" in (current.kind, wanted.kind)
        and {current.kind, wanted.kind} & {*INTEGRAL} != set()
    )


def _is_widened(one: Type, other: Type) -> bool:
    numbers = ["tinyint", "smallint", "int", "bigint", "double"]
    if one.kind in numbers and other.kind in numbers:
        return numbers.index(one.kind) <= numbers.index(other.kind)
    return one.kind == other.kind == "decimal" or _is_alike(one, other)


def _from_string(text: str, wanted: Type, *, is_try: bool) -> str:
    form, value, unsure = _FROM_STRING[wanted.kind]
    # Of a boolean it is a condition already; the rest DuckDB reads once it has the right form.
    value = value.replace("{0}", "_v")
    good = value if wanted.kind == "boolean" else f"{'TRY_' * is_try}CAST({value} AS {wanted.duck})"
    bad = "NULL" if is_try else f"error('''' || _v || ''' cannot be cast to {wanted}')"
    if unsure:
        doubt = f"error('{UNSURE}the cast of ''' || _v || ''' to {wanted}')"
        bad = f"CASE WHEN regexp_full_match(_v, '{unsure}') THEN {doubt} ELSE {bad} END"
    looked = (
        f"CASE WHEN regexp_full_match(_v, '{form}') THEN {good} "
        f"WHEN _v IS NULL THEN NULL ELSE {bad} END"
    )
    trimmed = f"regexp_replace({text}, '^{_SPACE}|{_SPACE}$', '', 'g')"
    return f"list_transform([{trimmed}], lambda _v: {looked})[1]"


def _to_string(text: str, current: Type) -> str | None:
    if current.kind in ("double", "float"):
        return f"string_of_{current.kind}({text})"
    if current.kind == "timestamp":
        return f"CAST(CAST({text} AS TIMESTAMP) AS VARCHAR)"
    if current.kind in (*INTEGRAL, "decimal", "boolean", "date", "timestamp_ntz"):
        return f"CAST({text} AS VARCHAR)"
    return None


def _number(text: str, current: Type, wanted: Type, *, is_try: bool) -> str:
    if wanted.kind in INTEGRAL and current.kind not in INTEGRAL:
        text = f"trunc({text})"
    elif wanted.kind == "decimal" and current.kind in ("float", "double"):
        # Spark goes by the digits one sees: 1.005 is 1.01, although it is a little less.
        text = f"CAST({text} AS VARCHAR)"
    return f"{'TRY_' * is_try}CAST({text} AS {wanted.duck})"


MACROS = (
    "floor_div(a, b) AS (a - ((a % b) + b) % b) // b",
    f"""string_of_double(x) AS CASE WHEN isnan(x) THEN 'NaN' WHEN isinf(x) THEN
        CASE WHEN x > 0 THEN 'Infinity' ELSE '-Infinity' END
        WHEN x = 0 OR (abs(x) >= 0.001 AND abs(x) < 10000000) OR x IS NULL THEN CAST(x AS VARCHAR)
        ELSE error('{UNSURE}' || x || ' as a string') END""",
    "string_of_float(x) AS string_of_double(x)",
)
"""What the casts need in DuckDB."""

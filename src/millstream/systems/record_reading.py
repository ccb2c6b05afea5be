"""Whether a pattern or a function of the user's can read the records of a source."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from millstream.errors import closest, fault, listed
from millstream.model.data_type import Atom, Decimal, type_ddl
from millstream.model.line_pattern import NAMED, LinePattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.errors import Location, MillstreamError
    from millstream.model.record import RecordOptions
    from millstream.model.schema import Schema

_KNOWN = f"write each column as (?P<name>…), or use one of {', '.join(NAMED)}"
_LINES = ("json", "text")
"""Formats that a function takes the place of: the first is what a source has by default."""


def reading_faults(
    options: RecordOptions, schema: Schema, source: str, at: Location
) -> Iterator[MillstreamError]:
    """Find a pattern or a function that cannot read the records, or that is not used."""
    kind = getattr(options, "format", "json")
    if options.pattern:
        yield from _pattern_faults(options, schema, source, at, kind)
    if options.parse is not None:
        yield from _parse_faults(options, source, at, kind)


def _pattern_faults(
    options: RecordOptions, schema: Schema, source: str, at: Location, kind: str
) -> Iterator[MillstreamError]:
    if kind != "text":
        by, fix = f"format={kind!r}", "set format='text', or leave pattern out"
        yield unused_option(source, "pattern", options.pattern, by, fix, at)
        return
    for why, use in _wrong(options, schema):
        yield fault("LINE_PATTERN", at=at, source=source, pattern=options.pattern, why=why, use=use)


def _wrong(options: RecordOptions, schema: Schema) -> Iterator[tuple[str, str]]:
    """Say what is wrong with a pattern, and what to do."""
    from millstream.landing.decode import pattern_fault

    pattern = LinePattern(options.pattern)
    try:
        names = pattern.names
    except re.error as error:
        yield f"cannot be read: {error}", _KNOWN
        return
    if not names:
        yield "has no named group", f"{closest(options.pattern, NAMED)}{_KNOWN}"
        return
    if (why := pattern_fault("".join(pattern.parts))) is not None:
        instead = "use no look-around, back-reference or possessive part: lines are matched by RE2"
        yield f"cannot be matched: {why}", instead
    for field in options.fields_of(schema).fields:
        if field.name not in names:
            use = f"{closest(field.name, names)}groups are {listed(names)}"
            if pattern.named:
                use = f"its columns are: {pattern.named.schema}"
            yield f"has no group for column {field.name!r}", use
        elif not isinstance(field.type, Atom | Decimal):
            why = f"gives text for column {field.name!r}, which is {type_ddl(field.type)}"
            yield why, "give the column a type without parts"


def _parse_faults(
    options: RecordOptions, source: str, at: Location, kind: str
) -> Iterator[MillstreamError]:
    unused = {"pattern": options.pattern, "rename": options.rename, "formats": options.formats}
    for option, value in unused.items():
        if value:
            by, fix = "parse", f"leave {option} out: the function gives the columns"
            yield unused_option(source, option, value, by, fix, at)
    if kind not in _LINES:
        fix = "leave format out: the function reads lines, or values as they are"
        yield unused_option(source, "format", kind, "parse", fix, at)
    if (why := _uncallable(options.parse)) is not None:
        shown = options.parse if isinstance(options.parse, str) else _name(options.parse)
        yield fault("PARSE_FUNCTION", at=at, source=source, function=shown, why=why)


def _uncallable(parse: object) -> str | None:
    from millstream.landing.decode import function_of

    try:
        function = function_of(parse)
        inspect.signature(function).bind("records")
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def unused_option(
    source: str, option: str, value: object, by: str, fix: str, at: Location
) -> MillstreamError:
    """Refuse an option that another one leaves without effect."""
    return fault("OPTION_UNUSED", at=at, source=source, option=option, value=value, by=by, fix=fix)


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))

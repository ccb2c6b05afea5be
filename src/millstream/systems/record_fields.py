"""Whether the fields of records can become the columns of a schema as a source says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors import closest, fault, listed
from millstream.model.data_type import Atom, Decimal, Map, quoted_name, type_ddl
from millstream.model.record import field_name, path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.errors import Location, MillstreamError
    from millstream.model.record import RecordOptions
    from millstream.model.schema import Schema

TYPED = ("parquet", "avro", "raw")
"""Formats whose records have types of their own."""
_LENIENT = ("json", "csv")
_REST = (Map(Atom.STRING), Atom.STRING)


def rename_faults(
    options: RecordOptions, schema: Schema, source: str, at: Location
) -> Iterator[MillstreamError]:
    """Find columns that no field, or more than one, would become."""
    columns = schema.names
    is_typed = format_of(options) in TYPED
    taken, read = dict[str, str](), dict[str, str]()
    for name, column in options.rename.items():
        field = field_name(name)
        if column not in columns:
            why = f"{column!r} is no column of the schema"
            use = f"{closest(column, columns)}columns are {listed(columns)}"
        elif column in taken:
            why = f"field {taken[column]!r} becomes column {column!r}, too"
            use = "rename each to a column of its own"
        elif is_typed and len(path_of(name)) > 1:
            why = f"records of {format_of(options)} are not read by path"
            use = f"declare the STRUCT, or write a name that has a dot in backticks: '`{name}`'"
        elif field in columns and field not in options.rename.values():
            why = f"column {field!r} is read from that field, too"
            use = f"leave column {field!r} out of the schema, or rename another field to it"
        elif field in read:
            why = f"{read[field]!r} is that field, too"
            use = "rename each field once"
        else:
            taken[column] = read[field] = name
            continue
        yield fault("RENAME", at=at, source=source, field=name, column=column, why=why, use=use)


def rest_faults(
    options: RecordOptions, schema: Schema, source: str, at: Location
) -> Iterator[MillstreamError]:
    """Find a column of unknown fields that cannot hold them."""
    if options.rest is None:
        return
    kind, csv = format_of(options), getattr(options, "csv", None)
    types = {field.name: field.type for field in schema.fields}
    why, use = "", f"declare {quoted_name(options.rest)} MAP<STRING, STRING>, or STRING for JSON"
    if not _has_fields(options):
        why, use = "only JSON and CSV have unknown fields", "leave it out"
    elif kind == "csv" and not (csv and csv.header):
        why, use = "CSV without a header has no names", "set csv=ms.CsvOptions(header=True)"
    elif options.rest not in types:
        why = f"{options.rest!r} is no column of the schema"
    elif types[options.rest] not in _REST:
        why = f"column {options.rest!r} is {type_ddl(types[options.rest])}"
    elif options.rest in options.rename.values() or options.rest in options.formats:
        why, use = "that column is read from a field, too", "give the rest a column of its own"
    elif not next(field for field in schema.fields if field.name == options.rest).nullable:
        why, use = "it is null where nothing is left over", "leave out NOT NULL"
    if why:
        yield _option_fault("rest", repr(options.rest), why, use, source, at)


def lenient_faults(
    options: RecordOptions, schema: Schema, source: str, at: Location
) -> Iterator[MillstreamError]:
    """Find lenient columns that are not read from text or JSON, or have parts."""
    types = {field.name: field.type for field in schema.fields}
    columns = () if isinstance(options.lenient, bool) else tuple(options.lenient)
    if options.lenient and not _has_fields(options):
        why, use = "only JSON and CSV are read leniently", "leave it out"
        yield _option_fault("lenient", repr(options.lenient), why, use, source, at)
        return
    for column in columns:
        if column not in types:
            why = f"{column!r} is no column of the schema"
            use = f"{closest(column, types)}columns are {listed(types)}"
        elif column == options.rest or not isinstance(types[column], Atom | Decimal):
            why = f"column {column!r} is {type_ddl(types[column])}"
            use = "name columns without parts"
        else:
            continue
        yield _option_fault("lenient", repr(column), why, use, source, at)


def _option_fault(
    option: str, value: str, why: str, use: str, source: str, at: Location
) -> MillstreamError:
    return fault(
        "RECORD_OPTION", at=at, source=source, option=option, value=value, why=why, use=use
    )


def _has_fields(options: RecordOptions) -> bool:
    """Return whether records are JSON or CSV, and read as such."""
    return format_of(options) in _LENIENT and not options.is_read_by_user


def format_of(options: RecordOptions) -> str:
    """Return the format of a source; JSON, if it has no other."""
    return str(getattr(options, "format", "json"))

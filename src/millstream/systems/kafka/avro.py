"""The files of Avro schemas, and whether they can give the columns of a source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import SchemaError, fault
from millstream.model.avro import AvroSchemas, AvroTextError, parse_avro, resolve
from millstream.model.schema import Schema
from millstream.settings.secret import revealed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.errors import Location, MillstreamError
    from millstream.model.avro import AvroSchema
    from millstream.model.codec import AvroOptions
    from millstream.model.record import RecordOptions

_GREATEST_ID = 2**32 - 1


@dataclass(frozen=True, slots=True)
class AvroFiles:
    """What was found where the options point, once: a file that changes later changes nothing."""

    schemas: AvroSchemas | None = None
    faults: tuple[tuple[str, str], ...] = ()
    """Options, each with what is wrong with it."""


def read_avro(options: AvroOptions) -> AvroFiles:
    """Read all schemas that are named."""
    faults: list[tuple[str, str]] = []
    if bool(options.writer) == bool(options.writers):
        why = "has both a writer and writers" if options.writer else "has no schema"
        faults.append(("avro", why))
    writers = [(None, _read("avro.writer", options.writer, faults))] if options.writer else []
    found: list[tuple[int | None, AvroSchema | None]] = [*writers]
    for number, writer in options.writers.items():
        option = f"avro.writers.{number}"
        if not (str(number).isdecimal() and int(number) <= _GREATEST_ID):
            faults.append((option, f"has the id {number!r}, which is not a number of four bytes"))
            continue
        found.append((int(number), _read(option, writer, faults)))
    reader = _read("avro.reader", options.reader, faults) if options.reader else None
    if reader is not None:
        faults += (
            (f"avro.writer{'' if number is None else f's.{number}'}", _renamed(writer, reader))
            for number, writer in found
            if writer is not None and not reader.root.is_known_as(writer.root)
        )
    if faults:
        return AvroFiles(None, tuple(faults))
    known = tuple((number, writer) for number, writer in found if writer is not None)
    return AvroFiles(AvroSchemas(known, reader))


def avro_faults(
    files: AvroFiles, columns: object, record: RecordOptions, source: str, at: Location
) -> Iterator[MillstreamError]:
    """Schemas that cannot be read, and columns that they cannot give."""
    for option, why in files.faults:
        yield fault("AVRO_SCHEMA", at=at, source=source, option=option, why=why)
    if files.schemas is None:
        return
    try:
        schema = record.fields_of(Schema.parse(columns))
    except SchemaError:
        return
    for _, writer in files.schemas.writers:
        for column in resolve(writer, files.schemas.reader, schema)[1]:
            instead = "declare it as it is written, or leave it out"
            if column.can_default:
                instead = "leave it out, or give avro.reader: a schema with a default for it"
            yield fault(
                "AVRO_COLUMN",
                at=at,
                column=column.column,
                source=source,
                schema=writer.origin,
                why=column.why,
                instead=instead,
            )


def _read(option: str, value: object, faults: list[tuple[str, str]]) -> AvroSchema | None:
    if not isinstance(value, str):
        faults.append((option, f"is {value!r}, not a text"))
        return None
    text = revealed(value)
    is_text = text.lstrip().startswith(("{", "[", '"'))
    try:
        if not is_text:
            text = Path(text).read_text(encoding="utf-8")
        return parse_avro(text, option if is_text else str(value))
    except OSError as error:
        faults.append((option, f"names {str(value)!r}, which cannot be read: {error.strerror}"))
    except (AvroTextError, UnicodeDecodeError) as error:
        named = "is" if is_text else f"names {str(value)!r}, which is"
        faults.append((option, f"{named} no Avro schema of a record: {error}"))
    return None


def _renamed(writer: AvroSchema, reader: AvroSchema) -> str:
    name = reader.root.name
    return f"is {writer.root}, which is neither the reader's {name!r} nor an alias of it"

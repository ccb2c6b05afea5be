"""Avro object container files: a schema, then blocks of records written by it."""

from __future__ import annotations

import bz2
import lzma
import zlib
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from millstream.landing.decode.avro_code import compiled_one_of_many
from millstream.landing.decode.avro_value import FAULTS, row_type
from millstream.landing.decode.column import arrow_fields, arrow_type, attribute, builder
from millstream.model.avro import AvroTextError, columns_of, parse_avro, resolve
from millstream.model.avro.step import Build, SkipValue
from millstream.model.data_type import Atom, Field
from millstream.model.schema import Schema
from millstream.systems.files.failure import UnreadableFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from millstream.landing.decode.column import Column
    from millstream.model.data_type import Decimal

    Read = Callable[[bytes, int], tuple[Any, int]]

_MARKS = (
    Field("_reason", Atom.STRING),
    Field("_raw", Atom.BINARY),
    Field("_origin", Atom.STRING),
    Field("_position", Atom.BIGINT),
)
_MAGIC = b"Obj\x01"
_SYNC = 16
_ROWS = 10_000
"""The most rows of a batch."""


class _UnsoundError(ValueError):
    """A file that is not as the specification of container files says."""


@dataclass(frozen=True, slots=True)
class _Record:
    row: Any
    reason: str | None = None
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Reads the records of files that have one schema."""

    read: Read
    skip: Read
    """Passes over a record that does not fit."""
    getters: tuple[Callable[[Any], Any], ...]
    """One for each declared column; a column that files may lack is null."""
    blank: Any

    def records(self, block: bytes, count: int) -> Iterator[_Record]:
        i = 0
        for _ in range(count):
            start = i
            try:
                row, i = self.read(block, start)
            except FAULTS as error:
                i = self.skip(block, start)[1]
                yield _Record(self.blank, str(error), block[start:i])
            else:
                yield _Record(row)
        if i != len(block):
            _refuse("a block is longer than its records")


def rows(schema: Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function that turns files, one per row, into typed rows, for `mapInArrow`."""

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shape = _Shape(schema)
        for batch in batches:
            contents, origins = batch.column("value"), batch.column("_origin")
            for content, origin in zip(contents, origins, strict=True):
                yield from shape.file(content.as_py(), str(origin.as_py()))

    return decode


def columns_in(content: bytes, origin: str) -> Schema:
    """Return the columns that the records of a file can become.

    Raises:
        UnreadableFileError: It is no such file.
    """
    try:
        text = _header(content)[0].get("avro.schema", b"").decode()
        return columns_of(parse_avro(text, "the file's schema"))
    except (_UnsoundError, AvroTextError, *FAULTS) as error:
        why = f"it is not read as Avro: {error}"
        raise UnreadableFileError(origin, why) from None


class _Shape:
    """The columns that files are read into."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._builders = [builder(field.type, _leaf) for field in schema.fields]
        self._fields = pa.schema(arrow_fields((*schema.fields, *_MARKS)))

    def file(self, content: bytes, origin: str) -> Iterator[pa.RecordBatch]:
        """Read a file: to its end before its first row is passed on."""
        try:
            header, at = _header(content)
            reader = _reader(header.get("avro.schema", b"").decode(), self._schema)
            codec = header.get("avro.codec", b"null").decode()
            found = [
                record
                for count, block in _blocks(content, at, codec)
                for record in reader.records(block, count)
            ]
        except (_UnsoundError, AvroTextError, *FAULTS) as error:
            why = "it ends too early" if isinstance(error, IndexError) else str(error)
            raise UnreadableFileError(origin, f"it is not read as Avro: {why}") from None
        for start in range(0, len(found), _ROWS):
            yield self._batch(reader, found[start : start + _ROWS], start + 1, origin)

    def _batch(
        self, reader: _Bytes, found: Sequence[_Record], first: int, origin: str
    ) -> pa.RecordBatch:
        values = [record.row for record in found]
        columns = [
            build(list(map(get, values)))
            for build, get in zip(self._builders, reader.getters, strict=True)
        ]
        marks: list[Column] = [
            pa.array([record.reason for record in found], pa.string()),
            pa.array([record.raw for record in found], pa.binary()),
            pa.array([origin] * len(found), pa.string()),
            pa.array(range(first, first + len(found)), pa.int64()),
        ]
        return pa.RecordBatch.from_arrays([*columns, *marks], schema=self._fields)


def _leaf(kind: Atom | Decimal) -> Any:
    of = arrow_type(kind)
    return lambda values: pa.array(values, of)


@lru_cache(maxsize=32)
def _reader(text: str, schema: Schema) -> _Bytes:
    """Resolve the schema of a file to the declared columns."""
    writer = parse_avro(text, "the file's schema")
    written = {part.name for part in writer.root.parts}
    present = tuple(f for f in schema.fields if f.name in written or not f.nullable)
    step, faults = resolve(writer, None, Schema(present))
    if step is None:
        why = "; ".join(f"column {fault.column!r}: {fault.why}" for fault in faults)
        raise _UnsoundError(why)
    slots = {field.name: slot for slot, field in enumerate(present)}
    getters = tuple(
        attrgetter(attribute(slots[field.name])) if field.name in slots else _nothing
        for field in schema.fields
    )
    skipped = Build((("", SkipValue(writer.root, writer), None),), (), 0)
    read, skip = compiled_one_of_many(step), compiled_one_of_many(skipped)
    return _Bytes(read, skip, getters, row_type(len(present))(*[None] * len(present)))


def _refuse(why: str) -> NoReturn:
    raise _UnsoundError(why) from None


def _nothing(_: Any) -> None:
    return None


def _header(content: bytes) -> tuple[dict[str, bytes], int]:
    """Read what a file says of itself, and where that ends."""
    if not content.startswith(_MAGIC):
        _refuse("it does not begin with 'Obj' and a byte 1")
    found: dict[str, bytes] = {}
    count, at = _long(content, len(_MAGIC))
    while count:
        if count < 0:
            _, at = _long(content, at)
        for _ in range(abs(count)):
            key, at = _bytes(content, at)
            found[key.decode()], at = _bytes(content, at)
        count, at = _long(content, at)
    return found, at


def _blocks(content: bytes, at: int, codec: str) -> Iterator[tuple[int, bytes]]:
    """Decompress the blocks of a file, each with the number of its records."""
    if codec not in _CODECS:
        _refuse(f"its codec is {codec!r}; known are {', '.join(_CODECS)}")
    sync, at = _slice(content, at, _SYNC)
    while at < len(content):
        count, at = _long(content, at)
        block, at = _bytes(content, at)
        mark, at = _slice(content, at, _SYNC)
        if mark != sync:
            _refuse("a block does not end with the mark of its file")
        try:
            data = _CODECS[codec](block)
        except (zlib.error, OSError, EOFError, lzma.LZMAError, pa.ArrowException) as error:
            _refuse(f"a block is not {codec}: {error}")
        yield count, data


def _long(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at


def _bytes(content: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(content, at)
    return _slice(content, at, size)


def _slice(content: bytes, at: int, size: int) -> tuple[bytes, int]:
    if size < 0 or at + size > len(content):
        raise IndexError
    return content[at : at + size], at + size


def _snappy(block: bytes) -> bytes:
    """Decompress a block, which begins with its length and ends with a checksum."""
    twice, _ = _long(block, 0)
    size = twice * 2 if twice >= 0 else -twice * 2 - 1
    data = bytes(pa.Codec("snappy").decompress(block[:-4], size, asbytes=True))
    if zlib.crc32(data) != int.from_bytes(block[-4:], "big"):
        _refuse("a block is not what its checksum says")
    return data


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda block: block,
    "deflate": lambda block: zlib.decompress(block, -15),
    "snappy": _snappy,
    "zstandard": lambda block: pa.CompressedInputStream(pa.BufferReader(block), "zstd").read(),
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
}

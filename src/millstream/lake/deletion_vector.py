"""Deletion vectors: which rows of a data file are no longer rows of its table.

The format is that of Delta's protocol: a 64-bit roaring bitmap of row positions, in a file of its
own or, by other programs, in the log. Files here have fewer than 2**32 rows, so there is one 32-bit
bitmap in it; it is cut into containers of 65,536 positions each.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import numpy as np

from millstream.lake.durable import sync_file, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Positions = NDArray[np.uint32]
    """Ascending, each once."""

_MAGIC = 1681511377
_COOKIE, _COOKIE_WITH_RUNS = 12346, 12347
_NO_OFFSETS_BELOW = 4
"""Containers: a bitmap with runs and fewer of them has no table of offsets."""
_MOST_IN_ARRAY = 4096
_CONTAINER = 1 << 16
_VERSION = b"\x01"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID_DIGITS = 20

NOTHING: Positions = np.empty(0, np.uint32)


class UnreadableVectorError(ValueError):
    """A deletion vector is not as its format says."""


@dataclass(frozen=True, slots=True)
class Vector:
    """Where the deleted positions of a file are written, as the log describes it."""

    storage: str
    place: str
    size: int
    count: int
    """How many rows are deleted."""
    offset: int | None = None

    @staticmethod
    def from_log(described: Mapping[str, Any] | None) -> Vector | None:
        """Read the description in an action of the log, if it has one."""
        if described is None:
            return None
        return Vector(
            described["storageType"],
            described["pathOrInlineDv"],
            described["sizeInBytes"],
            described["cardinality"],
            described.get("offset"),
        )

    def to_log(self) -> dict[str, Any]:
        """Describe it in an action of the log."""
        where = {} if self.offset is None else {"offset": self.offset}
        return {
            "storageType": self.storage,
            "pathOrInlineDv": self.place,
            **where,
            "sizeInBytes": self.size,
            "cardinality": self.count,
        }

    def file(self, table: Path) -> Path | None:
        """Return the file that it is in; None if it is in the log."""
        match self.storage:
            case "u":
                prefix = self.place[:-_UUID_DIGITS]
                name = f"deletion_vector_{uuid.UUID(bytes=_decoded(self.place[len(prefix) :]))}.bin"
                return table / prefix / name if prefix else table / name
            case "p":
                return table / unquote(urlparse(self.place).path)
            case _:
                return None

    def read(self, table: Path) -> Positions:
        """Read the deleted positions.

        Raises:
            UnreadableVectorError: They are not as the format and the checksum say.
        """
        if (file := self.file(table)) is None:
            content = _decoded(self.place)[: self.size]
        else:
            with file.open("rb") as opened:
                opened.seek(self.offset or 0)
                framed = opened.read(self.size + 8)
            content = framed[4:-4]
            size, checksum = struct.unpack(">I", framed[:4])[0], struct.unpack(">I", framed[-4:])[0]
            if size != self.size or zlib.crc32(content) != checksum:
                raise UnreadableVectorError(str(file))
        found = decode(content)
        if len(found) != self.count:
            raise UnreadableVectorError(str(file or self.place))
        return found


def write_vectors(table: Path, deleted: Mapping[str, Positions]) -> dict[str, Vector]:
    """Write the deleted positions of some files of a table into one file, and force it to disk."""
    if not deleted:
        return {}
    name, vectors = uuid.uuid4(), dict[str, Vector]()
    file = table / f"deletion_vector_{name}.bin"
    place, offset = _encoded(name.bytes), len(_VERSION)
    with file.open("wb") as opened:
        opened.write(_VERSION)
        for path, positions in deleted.items():
            content = encode(positions)
            opened.write(struct.pack(">I", len(content)))
            opened.write(content)
            opened.write(struct.pack(">I", zlib.crc32(content)))
            vectors[path] = Vector("u", place, len(content), len(positions), offset)
            offset += len(content) + 8
    sync_file(file)
    sync_folder(table)
    return vectors


def encode(positions: Positions) -> bytes:
    """Write positions as a roaring bitmap.

    >>> decode(encode(np.array([1, 5, 70_000], np.uint32))).tolist()
    [1, 5, 70000]
    """
    keys, starts = np.unique(positions >> 16, return_index=True)
    ends = np.append(starts, len(positions))[1:]
    low = (positions & (_CONTAINER - 1)).astype("<u2")
    bodies = [_container(low[start:end]) for start, end in zip(starts, ends, strict=True)]
    heads = np.column_stack((keys, ends - starts - 1)).astype("<u2").tobytes()
    first = 8 + 8 * len(keys)
    offsets = np.cumsum([first, *map(len, bodies)])[:-1].astype("<u4").tobytes()
    bitmap = struct.pack("<II", _COOKIE, len(keys)) + heads + offsets + b"".join(bodies)
    return struct.pack("<IQI", _MAGIC, 1, 0) + bitmap


def decode(content: bytes) -> Positions:
    """Read a roaring bitmap.

    Raises:
        UnreadableVectorError: It is none, or has positions that no file here has.
    """
    try:
        magic, bitmaps = struct.unpack_from("<IQ", content)
        if magic != _MAGIC or bitmaps > 1:
            raise UnreadableVectorError
        if not bitmaps:
            return NOTHING
        if struct.unpack_from("<I", content, 12)[0]:
            raise UnreadableVectorError
        parts = list(_containers(content[16:]))
    except (struct.error, ValueError) as error:
        raise UnreadableVectorError(str(error)) from error
    return np.concatenate(parts) if parts else NOTHING


def _container(low: NDArray[np.uint16]) -> bytes:
    if len(low) <= _MOST_IN_ARRAY:
        return low.tobytes()
    bits = np.zeros(_CONTAINER, np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def _containers(bitmap: bytes) -> Iterator[Positions]:
    cookie = struct.unpack_from("<I", bitmap)[0]
    runs = b""
    if cookie & 0xFFFF == _COOKIE_WITH_RUNS:
        number, at = (cookie >> 16) + 1, 4
        runs = bitmap[at : at + (number + 7) // 8]
        at += len(runs)
    elif cookie == _COOKIE:
        number, at = struct.unpack_from("<I", bitmap, 4)[0], 8
    else:
        raise UnreadableVectorError
    heads = np.frombuffer(bitmap, "<u2", 2 * number, at).reshape(-1, 2).astype(np.uint32)
    at += 4 * number
    if not runs or number >= _NO_OFFSETS_BELOW:
        at += 4 * number
    for index, (key, less) in enumerate(heads.tolist()):
        high = np.uint32(key << 16)
        if runs and runs[index // 8] >> index % 8 & 1:
            count = struct.unpack_from("<H", bitmap, at)[0]
            pairs = np.frombuffer(bitmap, "<u2", 2 * count, at + 2).reshape(-1, 2).tolist()
            low = [np.arange(start, start + more + 1, dtype=np.uint32) for start, more in pairs]
            yield np.concatenate(low) | high
            at += 2 + 4 * count
        elif less < _MOST_IN_ARRAY:
            yield np.frombuffer(bitmap, "<u2", less + 1, at).astype(np.uint32) | high
            at += 2 * (less + 1)
        else:
            bits = np.unpackbits(
                np.frombuffer(bitmap, np.uint8, _CONTAINER // 8, at), bitorder="little"
            )
            yield np.flatnonzero(bits).astype(np.uint32) | high
            at += _CONTAINER // 8


def _encoded(data: bytes) -> str:
    text = ""
    for at in range(0, len(data), 4):
        number = int.from_bytes(data[at : at + 4], "big")
        digits = ""
        for _ in range(5):
            number, digit = divmod(number, 85)
            digits = _DIGITS[digit] + digits
        text += digits
    return text


def _decoded(text: str) -> bytes:
    parts: list[bytes] = []
    for at in range(0, len(text), 5):
        number = 0
        for digit in text[at : at + 5]:
            number = 85 * number + _DIGITS.index(digit)
        parts.append(number.to_bytes(4, "big"))
    return b"".join(parts)

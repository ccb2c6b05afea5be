"""The checksums that Hadoop and Spark keep beside the files of a checkpoint."""

from __future__ import annotations

import json
import struct
import zlib
from functools import cache
from typing import TYPE_CHECKING, Literal

from millstream.lake.durable import write_durably

if TYPE_CHECKING:
    from pathlib import Path

Seal = Literal["whole", "broken", "none", "seal broken"]
"""The result of a check; with a broken seal, the file may be whole."""

_MAGIC = b"crc\x00"
_CHUNK = 512
_CRC32C = 0x82F63B78


def seal_path(file: Path) -> Path:
    """Where Hadoop keeps the checksum of a file."""
    return file.with_name(f".{file.name}.crc")


def digest_path(file: Path) -> Path:
    """Where Spark keeps the checksum of a state file."""
    return file.with_name(f"{file.name}.crc")


def read_seal(file: Path) -> Seal:
    """Check a file against the checksum that Hadoop keeps of it."""
    try:
        kept = seal_path(file).read_bytes()
    except FileNotFoundError:
        return "none"
    made = seal_of(file.read_bytes())
    if kept == made:
        return "whole"
    if len(kept) % 4 or not kept.startswith(made[:8]):
        return "seal broken"
    if len(kept) != len(made):
        # A file does not grow: a seal that fits its beginning was cut, not the file.
        return "seal broken" if made.startswith(kept) else "broken"
    # One byte that changed in the file changes its sum everywhere.
    changed = sum(a != b for a, b in zip(kept, made, strict=True))
    return "seal broken" if changed == 1 else "broken"


def read_digest(file: Path) -> Seal:
    """Check a state file against the checksum that Spark keeps of it."""
    kept = digest_path(file)
    if not kept.exists():
        return "none"
    if (recorded := _read_digest(kept)) is None or read_seal(kept) in ("broken", "seal broken"):
        return "seal broken"
    data = file.read_bytes()
    return "whole" if recorded == (len(data), crc32c(data)) else "broken"


def size_fits(file: Path) -> bool:
    """Whether a state file has the size that Spark recorded; the file itself is not read."""
    recorded = _read_digest(digest_path(file)) if digest_path(file).exists() else None
    return recorded is None or recorded[0] == file.stat().st_size


def seal_of(data: bytes) -> bytes:
    """Make the checksum that Hadoop would keep.

    >>> seal_of(b"v1").hex()
    '63726300000002006962ccb5'
    """
    sums = (zlib.crc32(data[at : at + _CHUNK]) for at in range(0, len(data), _CHUNK))
    return _MAGIC + struct.pack(">I", _CHUNK) + b"".join(struct.pack(">I", s) for s in sums)


def write_sealed(file: Path, text: str) -> None:
    """Write a file and its checksum, durably and each in one step."""
    data = text.encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    seal_path(file).unlink(missing_ok=True)
    write_durably(file, data)
    write_durably(seal_path(file), seal_of(data))


def crc32c(data: bytes) -> int:
    """Sum data up as Spark does.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    table, value = _table(), 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_CRC32C if value & 1 else 0)  # noqa: PLW2901
        table.append(value)
    return tuple(table)


def _read_digest(digest: Path) -> tuple[int, int] | None:
    """Read size and sum."""
    try:
        recorded = json.loads(digest.read_bytes())
        return int(recorded["mainFileSize"]), int(recorded["value"]) & 0xFFFFFFFF
    except (ValueError, KeyError, TypeError):
        return None

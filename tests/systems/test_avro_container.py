from __future__ import annotations

import io
import zlib
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pytest

from millstream.model.schema import Schema
from millstream.systems.files.avro_container import rows
from millstream.systems.files.failure import UnreadableFileError, unreadable

if TYPE_CHECKING:
    from collections.abc import Sequence

WRITTEN: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "unused", "type": ["null", "double"]},
    ],
}
COLUMNS = "tags ARRAY<STRING>, id BIGINT, at TIMESTAMP, later STRING"


def order(number: int, at: int = 0) -> dict[str, Any]:
    return {"id": number, "at": at, "tags": ["a"] * (number % 3), "unused": number / 2}


def container(orders: Sequence[dict[str, Any]], codec: str = "null") -> bytes:
    out = io.BytesIO()
    parsed = fastavro.parse_schema(WRITTEN)
    fastavro.writer(out, parsed, orders, codec=codec, sync_interval=500)
    return out.getvalue()


def compressed_by_hand(content: bytes, codec: str, block: bytes, count: int) -> bytes:
    """Make a file with one block, in a codec that the writer of the tests lacks."""
    sync = content[-16:]
    named = bytes([2 * len(codec)]) + codec.encode()
    head = content[: content.index(sync)].replace(b"\x08null", named)
    return head + sync + bytes([2 * count]) + _long(len(block)) + block + sync


def _long(n: int) -> bytes:
    found, rest = bytearray(), n << 1
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*found, rest])


def read(content: bytes, columns: str = COLUMNS) -> list[dict[str, Any]]:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([content], pa.binary()), pa.array(["f.avro"])], ["value", "_origin"]
    )
    found = rows(Schema.parse(columns))(iter([batch]))
    return [row for each in found for row in each.to_pylist()]


def refused(content: bytes, columns: str = COLUMNS) -> str:
    with pytest.raises(UnreadableFileError) as caught:
        read(content, columns)
    named = unreadable(RuntimeError(f"millstream.UnreadableFileError: {caught.value}"))
    assert named is not None
    assert named[0] == "f.avro"
    return named[1].removeprefix("it is not read as Avro: ")


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_every_record_of_every_block_is_read_and_a_column_that_files_lack_is_null(
    codec: str,
) -> None:
    orders = [order(n) for n in range(300)]

    found = read(container(orders, codec))

    assert [(row["id"], row["tags"]) for row in found] == [(o["id"], o["tags"]) for o in orders]
    assert [row["_position"] for row in found] == list(range(1, 301))
    assert {(row["later"], row["_reason"], row["_origin"]) for row in found} == {
        (None, None, "f.avro")
    }


@pytest.mark.parametrize("codec", ["snappy", "zstandard"])
def test_codecs_that_need_a_library_elsewhere_are_read(codec: str) -> None:
    plain, out = container([order(1), order(2)]), io.BytesIO()
    for each in (order(1), order(2)):
        fastavro.schemaless_writer(out, fastavro.parse_schema(WRITTEN), each)
    data = out.getvalue()
    if codec == "snappy":
        packed = pa.compress(data, codec="snappy", asbytes=True)
        block = packed + zlib.crc32(data).to_bytes(4, "big")
    else:
        block = pa.compress(data, codec="zstd", asbytes=True)

    assert [row["id"] for row in read(compressed_by_hand(plain, codec, block, 2))] == [1, 2]
    broken = block[:-1] + bytes([block[-1] ^ 1])
    if codec == "snappy":
        assert "checksum" in refused(compressed_by_hand(plain, codec, broken, 2))


def test_a_record_that_does_not_fit_is_malformed_and_the_next_one_is_read() -> None:
    found = read(container([order(1), order(2, at=2**62), order(3)]))

    assert [(row["id"], row["_reason"] is None, row["_raw"] is None) for row in found] == [
        (1, True, True),
        (None, False, False),
        (3, True, True),
    ]
    assert found[1]["_reason"].endswith("does not fit TIMESTAMP, at $.at")


def test_what_is_no_sound_file_is_refused_as_a_whole() -> None:
    whole = container([order(n) for n in range(300)])

    assert refused(b"PAR1") == "it does not begin with 'Obj' and a byte 1"
    for end in (5, 60, len(whole) // 2, len(whole) - 1):
        assert refused(whole[:end])
    assert refused(whole[:-1] + b"x") == "a block does not end with the mark of its file"
    assert "its codec is 'lzo'" in refused(compressed_by_hand(whole, "lzo", b"", 0))
    why = refused(whole, "id STRING, missing INT NOT NULL")
    assert "column 'id'" in why
    assert "column 'missing'" in why

"""JSON files of one document each: an object, or an array of objects, over any number of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDS = "value BINARY, _origin STRING, _position BIGINT"
"""The columns of records, for `mapInArrow`."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_Elements = msgspec.json.Decoder(list[msgspec.Raw])


def records(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut documents, one per row, into records, numbered within their document."""
    for batch in batches:
        values: list[bytes] = []
        origins: list[str] = []
        positions: list[int] = []
        documents = batch.column("value").cast(pa.binary())
        for document, origin in zip(documents, batch.column("_origin"), strict=True):
            cut = records_of(bytes(document.as_py() or b""))
            values += cut
            origins += [str(origin.as_py())] * len(cut)
            positions += range(1, len(cut) + 1)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(values, pa.binary()),
                pa.array(origins, pa.string()),
                pa.array(positions, pa.int64()),
            ],
            ["value", "_origin", "_position"],
        )


def records_of(document: bytes) -> list[bytes]:
    """Return the elements of an array, or else the document: a record, or what is wrong with it.

    >>> records_of(b' [{"a": 1}, {"a": 2}]')
    [b'{"a": 1}', b'{"a": 2}']
    >>> records_of(b'[{"a": 1},')
    [b'[{"a": 1},']
    """
    text = document.removeprefix(_BYTE_ORDER_MARK)
    if not text.lstrip().startswith(b"["):
        return [text]
    try:
        return [bytes(element) for element in _Elements.decode(text)]
    except (msgspec.DecodeError, RecursionError):
        return [text]

"""Raw records, as landing hands them to its decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.landing.decode import decoder
from millstream.model.record import RecordOptions
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.landing.decode import Format


def raw(records: Sequence[str | bytes | None], origins: Sequence[str] = ()) -> pa.RecordBatch:
    """Make a batch of records, all of one file unless the file of each is given."""
    values = [each.encode() if isinstance(each, str) else each for each in records]
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(values, pa.binary()),
            "_origin": pa.array(origins or ["f"] * len(values), pa.string()),
            "_position": pa.nulls(len(values), pa.int64()),
        }
    )


def decoded(
    records: Sequence[str | bytes | None], schema: str, form: Format, **options: Any
) -> list[dict[str, Any]]:
    """Decode records; a row for each."""
    run = decoder(Schema.parse(schema), format=form, record=RecordOptions(**options))
    return [row for out in run(iter([raw(records)])) for row in out.to_pylist()]

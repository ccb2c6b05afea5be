"""A source proposed for rows that have types already, such as those of Parquet or Avro files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.landing.proposal.lines import keys_of
from millstream.landing.proposal.proposal import Proposal, quoted, renamed
from millstream.landing.proposal.times import event_time

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
    "binary": "BINARY",
    "large_binary": "BINARY",
}


def propose_rows(
    rows: pa.Table, form: str = "parquet", types: Mapping[str, str] | None = None
) -> Proposal:
    """Propose a source of such rows.

    Args:
        rows: Some of them.
        form: The format of the files.
        types: Of the columns, if they are not those of the rows.
    """
    known = types or {f.name: _type(f.type) for f in rows.schema}
    rename = renamed(known)
    columns = {rename.get(name, name): kind for name, kind in known.items()}
    values = [{rename.get(n, n): v for n, v in row.items()} for row in rows.to_pylist()]
    chosen, watermark = event_time(columns, {}, values, typed=True)
    return Proposal(
        format=form,
        columns=columns,
        sampled=rows.num_rows,
        fits=rows.num_rows,
        rename=rename,
        event_time=chosen,
        watermark=watermark,
        keys=keys_of(columns, values),
    )


def _type(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{quoted(f.name)}: {_type(f.type)}' for f in kind)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"ARRAY<{_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{_type(kind.key_type)}, {_type(kind.item_type)}>"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    return _NAMES.get(str(kind), "STRING")

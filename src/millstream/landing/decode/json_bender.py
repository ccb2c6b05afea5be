"""JSON objects whose values almost fit, made to fit where a source is lenient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from millstream.landing.decode.column import UNFIT
from millstream.landing.decode.json_fields import JsonField, read_fields
from millstream.landing.decode.json_reader import any_decoder
from millstream.landing.decode.lenient import bent
from millstream.model.data_type import Atom

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.landing.decode.json_fields import Fields
    from millstream.landing.decode.time_column import TimeColumn
    from millstream.model.record import RecordOptions
    from millstream.model.schema import Schema

_any = any_decoder()
_encode = msgspec.json.Encoder(decimal_format="number").encode


class JsonBender:
    """Makes the values of some columns fit."""

    def __init__(
        self, schema: Schema, times: Mapping[str, TimeColumn], record: RecordOptions
    ) -> None:
        """Prepare.

        Args:
            schema: The columns.
            times: Columns of times that have formats, by the names of their fields.
            record: How fields become columns, and which columns are lenient.
        """
        pairs = zip(schema.fields, record.fields_of(schema).fields, strict=True)
        names = record.lenient_columns(schema)
        self._fields = {
            column.name: JsonField(field, record.paths.get(field.name, ()), times.get(field.name))
            for column, field in pairs
            if column.name in names
        }

    def bend(self, raw: bytes) -> tuple[bytes, tuple[str, ...]]:
        """Return a record in which more fits, and the columns of what was changed."""
        fields = read_fields(raw)
        bent = {column: _bent(field, fields) for column, field in self._fields.items()}
        found = {column: value for column, value in bent.items() if value is not None}
        # By its whole name, a field is read before the one that a path leads to.
        changed = {self._fields[column].field.name: value for column, value in found.items()}
        return _encode({**fields, **changed}), tuple(found)


def _bent(field: JsonField, fields: Fields) -> msgspec.Raw | None:
    """Return JSON that fits a field, if what is there does not."""
    written = field.found(fields)
    if written is None or field.fault(fields) is None:
        return None
    value: Any = _any(written)
    if isinstance(value, dict | list | None):
        return None
    try:
        if field.field.type is Atom.STRING:
            return msgspec.Raw(_encode(bytes(written).decode()))
        found = bent(field.field.type, value)
        return None if found is None and not field.field.nullable else msgspec.Raw(_encode(found))
    except UNFIT:
        return None

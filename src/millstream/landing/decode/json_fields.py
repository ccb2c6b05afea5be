"""Fields of JSON objects that need more than a struct: by path, by any name, or by no column."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.landing.decode.column import attribute, text_leaf
from millstream.landing.decode.fault import fault
from millstream.landing.decode.json_reader import JsonReader, any_decoder, decoder_of, is_plain_name
from millstream.landing.decode.reader import MalformedError
from millstream.model.data_type import Atom, Field, Struct
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.landing.decode.time_column import TimeColumn
    from millstream.model.record import RecordOptions

Fields = dict[str, msgspec.Raw]

read_fields = msgspec.json.Decoder(Fields).decode
_any = any_decoder()


def json_reader(
    schema: Schema, times: Mapping[str, TimeColumn], record: RecordOptions
) -> JsonReader | JsonFieldsReader:
    """Make the reader of objects: by a struct alone, where that is enough."""
    if not record.paths and not record.rest and all(map(is_plain_name, schema.names)):
        return JsonReader(schema, times)
    return JsonFieldsReader(schema, times, record.paths, record.rest)


class JsonFieldsReader:
    """Reads JSON objects; a row is what a struct can name, and then each other column."""

    is_text = True
    leaf = staticmethod(text_leaf)

    def __init__(
        self,
        schema: Schema,
        times: Mapping[str, TimeColumn],
        paths: Mapping[str, tuple[str, ...]],
        rest: str | None,
    ) -> None:
        """Prepare.

        Args:
            schema: The columns, by the names of their fields.
            times: Columns of times that have formats.
            paths: The names along the path to a field, unless there is one of that whole name.
            rest: The column of fields that no other column reads.
        """
        self._others = [
            JsonField(field, paths.get(field.name, ()), times.get(field.name))
            for field in schema.fields
            if field.name != rest and (field.name in paths or not is_plain_name(field.name))
        ]
        others = {other.field.name for other in self._others}
        near = [f for f in schema.fields if f.name not in others and f.name != rest]
        self._near = JsonReader(Schema(tuple(near)), times)
        self._rest = next((_Rest(f, schema, paths) for f in schema.fields if f.name == rest), None)
        self.blank = [self._near.blank, *[None] * (len(schema.fields) - len(near))]
        self.getters = list(self._getters(schema, near))

    def _getters(self, schema: Schema, near: Sequence[Field]) -> Sequence[Callable[[Any], Any]]:
        found: dict[str, Callable[[Any], Any]] = {}
        for i, field in enumerate(near):
            found[field.name] = _of_first(attrgetter(attribute(i)))
        others = [other.field.name for other in self._others]
        others += [self._rest.field.name] if self._rest else []
        found |= {name: itemgetter(i) for i, name in enumerate(others, 1)}
        return [found[field.name] for field in schema.fields]

    def read(self, raw: bytes) -> list[Any]:
        """Read one record."""
        row = [self._near.read(raw)]
        fields = read_fields(raw)
        row += [other.read(fields) for other in self._others]
        if self._rest is not None:
            row.append(self._rest.read(fields))
        return row

    def fault(self, raw: bytes) -> str | None:
        """Say what is wrong, and where."""
        try:
            fields = read_fields(raw)
        except (msgspec.DecodeError, RecursionError):
            return self._near.fault(raw)
        found = (other.fault(fields) for other in self._others)
        return next(filter(None, found), None) or self._near.fault(raw)


class JsonField:
    """A column that is read from one field, by name or else by path."""

    def __init__(self, field: Field, path: tuple[str, ...], time: TimeColumn | None) -> None:
        self.field, self._path, self._time = field, path, time
        takes_numbers = time is not None and time.takes_numbers
        self._decode = decoder_of(field, takes_numbers=takes_numbers)

    def read(self, fields: Fields) -> Any:
        """Read the value of a record."""
        found = self.found(fields)
        if found is None:
            if self.field.nullable:
                return None
            raise MalformedError(self.field.name)
        return self._decode(found)

    def fault(self, fields: Fields) -> str | None:
        """Say what is wrong with it, and where."""
        place = f"at $.{self.field.name}"
        try:
            found = self.found(fields)
        except MalformedError as error:
            return str(error)
        if found is None:
            return None if self.field.nullable else f"missing required field, {place}"
        value = _any(found)
        if value is None and self.field.nullable:
            return None
        if self._time is not None and value is not None:
            return self._time.fault(value, place)
        return fault(self.field.type, value, place)

    def found(self, fields: Fields) -> msgspec.Raw | None:
        """Find it, as it is written; None if it is not there.

        Raises:
            MalformedError: The path leads through something that is no object.
        """
        found = fields.get(self.field.name)
        if found is not None or not self._path:
            return found
        *parts, last = self._path
        for n, part in enumerate(parts, 1):
            inner = fields.get(part)
            if inner is None or bytes(inner) == b"null":
                return None
            try:
                fields = read_fields(inner)
            except msgspec.DecodeError:
                reason = fault(Struct(()), _any(inner), f"at $.{'.'.join(parts[:n])}")
                raise MalformedError(reason) from None
        return fields.get(last)


class _Rest:
    """The column of all fields that no other column reads; null if there are none."""

    def __init__(self, field: Field, schema: Schema, paths: Mapping[str, tuple[str, ...]]) -> None:
        self.field = field
        self._known = {f.name for f in schema.fields if f is not field}
        self._known |= {path[0] for path in paths.values()}

    def read(self, fields: Fields) -> Any:
        rest = {name: value for name, value in fields.items() if name not in self._known}
        if not rest:
            return None
        if self.field.type is Atom.STRING:
            return msgspec.json.encode(rest).decode()
        return {name: _text(value) for name, value in rest.items()}


def _text(value: msgspec.Raw) -> str | None:
    """Return a text as it is, null as null, and anything else as JSON."""
    text = bytes(value)
    if text == b"null":
        return None
    return str(msgspec.json.decode(text)) if text.startswith(b'"') else text.decode()


def _of_first(get: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda row: get(row[0])

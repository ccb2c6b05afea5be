"""A profile applied: sources that come from elsewhere, Spark settings, and all that is wrong."""

from __future__ import annotations

import typing
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from millstream.bind.kind import (
    INHERITED,
    SCALARS,
    Key,
    destination_kinds,
    keys_of,
    kinds,
    name_of,
    store_kinds,
    written_kinds,
)
from millstream.errors import MillstreamError, SchemaError, closest, fault, listed
from millstream.model.dataset import (
    Alert,
    BatchedSink,
    Following,
    Serve,
    Source,
    StoreSink,
)
from millstream.model.duration import parse_duration, to_text
from millstream.model.schema import Schema
from millstream.settings.profile import got, joined
from millstream.settings.secret import expand, has_variable
from millstream.spark.defaults import OWNED, is_seen_by_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.model.dataset import Dataset
    from millstream.settings.profile import Entry, Names, Profile


_OF_ANY_STORE = ("key", "newest_by", "delete_when", "evolve")
"""What the code says of a store, whichever it is."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What the code declares, as a profile would have it."""

    declared: tuple[Dataset, ...]
    spark: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[MillstreamError, ...] = ()


def bind(declared: Sequence[Dataset], profile: Profile) -> Bound:
    """Apply a profile; what is bound wrongly stays as the code says."""
    reader = _Reader()
    bound = [_bound(dataset, profile, reader) for dataset in declared]
    bound = [_inheriting(d) if isinstance(d, Source) else d for d in bound]
    for of, kind, said in (
        ("source", Source, profile.sources),
        ("serve", Serve, profile.serve),
        ("alert", Alert, profile.alert),
    ):
        names = [dataset.name for dataset in declared if isinstance(dataset, kind)]
        for name in sorted(said.keys() - set(names)):
            at = next(iter(said[name].values())).at
            reader.faults.append(
                fault(
                    "UNKNOWN_SOURCE",
                    at=at,
                    of=of,
                    name=name,
                    nearest=closest(name, names),
                    kinds="served answers" if of == "serve" else f"{of}s",
                    declared=listed(names),
                )
            )
    return Bound(tuple(bound), reader.spark(profile.spark), (*profile.faults, *reader.faults))


def _bound(dataset: Dataset, profile: Profile, reader: _Reader) -> Dataset:
    if isinstance(dataset, Source) and dataset.name in profile.sources:
        return reader.source(dataset, profile.sources[dataset.name])
    if isinstance(dataset, Serve) and dataset.name in profile.serve:
        return reader.serve(dataset, profile.serve[dataset.name])
    if isinstance(dataset, Alert) and dataset.name in profile.alert:
        return reader.alert(dataset, profile.alert[dataset.name])
    return dataset


@dataclass(frozen=True, slots=True)
class _Ends:
    """What datasets of a kind lead to."""

    of: str
    known: Mapping[str, type]
    in_code: Sequence[Any]
    """What the code says of one dataset."""
    of_any: tuple[str, ...] = ()
    """What stays as the code says, whichever it is."""


class _RefusedError(Exception):
    """Something was found wrong, and is among the faults."""


class _Reader:
    """Turns what is written into values, and collects what is wrong with it."""

    def __init__(self) -> None:
        self.faults: list[MillstreamError] = []

    def spark(self, entries: Mapping[str, Entry]) -> dict[str, str]:
        settings = {}
        for name, entry in entries.items():
            if name in OWNED:
                why = OWNED[name]
                self.faults.append(fault("SPARK_SETTING_REFUSED", at=entry.at, name=name, why=why))
                continue
            try:
                settings[name] = self._spark_text(name, entry)
            except _RefusedError:
                continue
        return settings

    def _spark_text(self, name: str, entry: Entry) -> str:
        text = _as_spark_writes(entry.value)
        if has_variable(text) and is_seen_by_all(name):
            expected = "it plainly: it is on the JVM's command line, which anyone can read"
            self._refuse_value(name, entry, expected)
        return self._text(name, entry, text)

    def source(self, source: Source, said: Mapping[Names, Entry]) -> Source:
        try:
            return self._bound(source, said)
        except _RefusedError:
            return source

    def serve(self, serve: Serve, said: Mapping[Names, Entry]) -> Serve:
        """Have a served answer go to one store instead of where the code says."""
        stores = [sink for sink in serve.to if isinstance(sink, StoreSink | BatchedSink)]
        bound = self._end(_Ends("serve", store_kinds(), stores, _OF_ANY_STORE), serve, said)
        return serve if bound is None else replace(serve, to=(bound,))

    def alert(self, alert: Alert, said: Mapping[Names, Entry]) -> Alert:
        """Have an alert told to one destination instead of those that the code says."""
        bound = self._end(_Ends("alert", destination_kinds(), alert.to), alert, said)
        return alert if bound is None else replace(alert, to=(bound,))

    def _end(self, ends: _Ends, dataset: Serve | Alert, said: Mapping[Names, Entry]) -> Any:
        """Make what a dataset leads to; None if something is wrong with it."""
        at, before = next(iter(said.values())).at, len(self.faults)
        entries = {path: entry for path, entry in said.items() if path}
        first = ends.in_code[0] if ends.in_code else None
        try:
            kind = self._end_kind(ends, dataset, entries.pop(("kind",), None), at)
            is_same = isinstance(first, kind)
            stay = tuple(keys_of(kind)) if is_same else ends.of_any
            given = {k: getattr(first, k) for k in stay if k in keys_of(kind) and hasattr(first, k)}
            values = given | self._values(f"{ends.of}.{dataset.name}", kind, entries)
            there = {*values, *(path[0] for path in entries)}
            self._refuse_missing(ends.of, dataset.name, kind, there, at)
        except _RefusedError:
            return None
        return None if len(self.faults) > before else kind(**values)

    def _end_kind(self, ends: _Ends, dataset: Serve | Alert, entry: Entry | None, at: Any) -> type:
        known, told = ends.known, entry.value if entry else name_of(type(dataset.to[0]))
        if entry is not None and not isinstance(entry.value, str):
            self._refuse_value(f"{ends.of}.{dataset.name}.kind", entry, "a text")
        if told not in known:
            where = entry.at if entry else at
            self._refuse(
                fault(
                    "UNKNOWN_KIND",
                    at=where,
                    of=ends.of,
                    name=dataset.name,
                    kind=told,
                    nearest=closest(told, known),
                    known=listed(known),
                )
            )
        return known[told]

    def _refuse_missing(self, of: str, name: str, kind: type, there: set[str], at: Any) -> None:
        for key in keys_of(kind).values():
            if key.is_required and key.name not in there:
                told = name_of(kind)
                self.faults.append(
                    fault("KEY_REQUIRED", at=at, of=of, name=name, kind=told, key=key.name)
                )

    def _bound(self, source: Source, said: Mapping[Names, Entry]) -> Source:
        at, before = next(iter(said.values())).at, len(self.faults)
        entries = {path: entry for path, entry in said.items() if path}
        kind, given = self._kind(source, entries.pop(("kind",), None), at)
        values = given | self._values(f"sources.{source.name}", kind, entries)
        there = {*values, *(path[0] for path in entries)}
        self._refuse_missing("source", source.name, kind, there, at)
        if len(self.faults) > before:
            raise _RefusedError
        bound = replace(source, connector=kind(**values), bound_at=at)
        gives = _columns(bound)
        if gives in (None, _columns(source)) or kind is type(source.connector):
            return bound
        # Of a connector that is wrong itself, the columns say nothing; the fault is found later.
        if not any(bound.connector.faults(source.name, at)):
            told = gives.to_ddl()
            self._refuse(
                fault("COLUMNS_FIXED", at=at, source=source.name, kind=name_of(kind), gives=told)
            )
        return bound

    def _kind(self, source: Source, entry: Entry | None, at: Any) -> tuple[type, dict[str, Any]]:
        """Choose the connector, and what the code says of it: all if it stays the same."""
        connector: Any = source.connector
        if entry is None:
            if type(connector) not in kinds().values():
                known = tuple(kinds())
                told = name_of(type(connector))
                self._refuse(
                    fault(
                        "UNKNOWN_KIND",
                        at=at,
                        of="source",
                        name=source.name,
                        kind=told,
                        nearest=closest(told, known),
                        known=listed(known),
                    )
                )
            kept = (f.name for f in fields(connector) if f.init)
            return type(connector), {name: getattr(connector, name) for name in kept}
        if not isinstance(entry.value, str):
            self._refuse_value(f"sources.{source.name}.kind", entry, "a text")
        if entry.value not in kinds():
            known = tuple(kinds())
            error = fault(
                "UNKNOWN_KIND",
                at=entry.at,
                of="source",
                name=source.name,
                kind=entry.value,
                nearest=closest(entry.value, known),
                known=listed(known),
            )
            self._refuse(error)
        kind = kinds()[entry.value]
        stays = {"schema": connector.schema, "event_time": source.event_time}
        return kind, {f.name: stays[f.name] for f in fields(kind) if f.name in INHERITED}

    def _values(self, where: str, kind: type, entries: Mapping[Names, Entry]) -> dict[str, Any]:
        """Read the keys of a connector, or of a table in it."""
        keys, values = keys_of(kind), dict[str, Any]()
        for name in dict.fromkeys(path[0] for path in entries):
            below = {path[1:]: entry for path, entry in entries.items() if path[0] == name}
            full, first = f"{where}.{name}", next(iter(below.values()))
            if name not in keys:
                known = ["kind", *keys] if kind in written_kinds() else list(keys)
                self.faults.append(
                    fault(
                        "UNKNOWN_KEY",
                        at=first.at,
                        key=name,
                        table=where,
                        nearest=closest(name, known),
                        known=listed(known),
                    )
                )
                continue
            try:
                values[name] = self._value(full, keys[name], below)
            except _RefusedError:
                continue
        return values

    def _value(self, where: str, key: Key, below: Mapping[Names, Entry]) -> Any:
        if is_dataclass(key.type):
            if () in below and below[()].value != {}:
                self._refuse_value(where, below[()], key.expected)
            part: Any = key.type
            return part(**self._values(where, part, {p: e for p, e in below.items() if p}))
        if key.is_table:
            return self._table(where, key, below)
        if () not in below:
            entry = next(iter(below.values()))
            self._refuse(
                fault("VALUE_REFUSED", at=entry.at, key=where, got="a table", expected=key.expected)
            )
        entry = below[()]
        if key.is_list:
            return self._texts(where, key, entry)
        return self._scalar(where, key, entry)

    def _table(self, where: str, key: Key, below: Mapping[Names, Entry]) -> dict[str, Any]:
        if () in below and below[()].value != {}:
            self._refuse_value(where, below[()], key.expected)
        table = {}
        for name, entry in joined({p: e for p, e in below.items() if p}).items():
            value = entry.value
            if not isinstance(value, str | int | bool | float):
                expected = "a text, a number or a boolean"
                self._refuse_value(f"{where}.{name}", entry, expected)
            table[name] = self._text(where, entry, value) if isinstance(value, str) else value
        return table

    def _texts(self, where: str, key: Key, entry: Entry) -> tuple[str, ...]:
        if not isinstance(entry.value, list) or not all(isinstance(v, str) for v in entry.value):
            self._refuse_value(where, entry, key.expected)
        return tuple(self._text(where, entry, text) for text in entry.value)

    def _scalar(self, where: str, key: Key, entry: Entry) -> Any:
        value, wanted = entry.value, key.type
        if typing.get_origin(wanted) is Literal:
            if value not in typing.get_args(wanted):
                self._refuse_value(where, entry, key.expected)
            return value
        if wanted is float and type(value) is int:
            return float(value)
        if wanted is timedelta and isinstance(value, str):
            try:
                return parse_duration(value)
            except ValueError:
                self._refuse_value(where, entry, key.expected)
        # A boolean is an integer to Python.
        if wanted not in SCALARS or type(value) is not wanted:
            self._refuse_value(where, entry, key.expected)
        return self._text(where, entry, value) if wanted is str else value

    def _text(self, key: str, entry: Entry, text: str) -> str:
        try:
            return expand(text, key=key, at=entry.at)
        except MillstreamError as error:
            self.faults.append(error)
            raise _RefusedError from error

    def _refuse_value(self, where: str, entry: Entry, expected: str) -> typing.NoReturn:
        told = got(entry.value)
        self._refuse(fault("VALUE_REFUSED", at=entry.at, key=where, got=told, expected=expected))

    def _refuse(self, error: MillstreamError) -> typing.NoReturn:
        self.faults.append(error)
        raise _RefusedError


def _inheriting(source: Source) -> Source:
    """Give a source that follows a table of another app the event time of that table.

    It waits at least as long as rows may come behind there.
    """
    connector = source.connector
    followed = connector.followed() if isinstance(connector, Following) else None
    if followed is None or followed.event_time is None or followed.delay is None:
        return source
    if source.event_time not in (None, followed.event_time):
        return source
    waits = [followed.delay]
    if source.watermark is not None:
        try:
            waits.append(parse_duration(source.watermark))
        except ValueError:
            return source
    return replace(source, event_time=followed.event_time, watermark=to_text(max(waits)))


def _as_spark_writes(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _columns(source: Source) -> Schema | None:
    try:
        return Schema.parse(source.connector.schema)
    except SchemaError:
        return None

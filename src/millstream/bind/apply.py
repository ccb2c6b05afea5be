"""A profile applied: sources that come from elsewhere, Spark settings, and all that is wrong."""

from __future__ import annotations

import typing
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from millstream.bind.kind import (
    SCALARS,
    Key,
    destination_kinds,
    keys_of,
    kinds,
    name_of,
    store_kinds,
    written_kinds,
)
from millstream.bind.run_keys import run_keys_of, with_run_keys
from millstream.errors import MillstreamError, SchemaError, closest, fault, listed
from millstream.model.connector import Following
from millstream.model.dataset import Alert, Serve, Source, Table, View
from millstream.model.duration import parse_duration, to_text
from millstream.model.record import RecordOptions
from millstream.model.schema import Schema
from millstream.model.sink import BatchedSink, StoreSink
from millstream.settings.profile import got, joined
from millstream.settings.secret import expand, has_variable
from millstream.spark.defaults import OWNED, is_on_command_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.model.dataset import Dataset
    from millstream.settings.profile import Names, Profile, ProfileEntry


_OF_ANY_STORE = ("key", "newest_by", "delete_when", "evolve")
"""What the code says of a store, whichever it is."""


@dataclass(frozen=True, slots=True)
class BoundApp:
    """What the code declares, as a profile would have it."""

    declared: tuple[Dataset, ...]
    spark: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[MillstreamError, ...] = ()


def bind(declared: Sequence[Dataset], profile: Profile) -> BoundApp:
    """Apply a profile; what is bound wrongly stays as the code says."""
    reader = _Reader()
    bound = [_bound(dataset, profile, reader) for dataset in declared]
    bound = [_inheriting(d) if isinstance(d, Source) else d for d in bound]
    for of, section in (
        ("source", "sources"),
        ("serve", "serve"),
        ("alert", "alert"),
        ("table", "tables"),
    ):
        bindings = profile.by_name(section)
        names = [dataset.name for dataset in declared if section_of(dataset) == section]
        for name in sorted(bindings.keys() - set(names)):
            at = next(iter(bindings[name].values())).at
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
    return BoundApp(tuple(bound), reader.spark(profile.spark), (*profile.faults, *reader.faults))


def _bound(dataset: Dataset, profile: Profile, reader: _Reader) -> Dataset:
    section = section_of(dataset)
    if section is None or isinstance(dataset, View):
        return dataset
    entries = profile.by_name(section).get(dataset.name, {})
    if not entries:
        return dataset
    bound, left, faults = with_run_keys(dataset, section, entries)
    reader.faults.extend(faults)
    return reader.bound(bound, left) if left else bound


def section_of(dataset: Dataset) -> str | None:
    """Return the table of a profile in which a dataset is bound."""
    match dataset:
        case Source():
            return "sources"
        case Serve():
            return "serve"
        case Alert():
            return "alert"
        case Table():
            return "tables"
    return None


@dataclass(frozen=True, slots=True)
class _Ends:
    """What datasets of a kind lead to."""

    of: str
    known: Mapping[str, type]
    in_code: Sequence[Any]
    """What the code says of one dataset."""
    of_any: tuple[str, ...] = ()
    """What stays as the code says, whichever it is."""


class _RefusedValueError(Exception):
    """Something was found wrong, and is among the faults."""


class _Reader:
    """Turns what is written into values, and collects what is wrong with it."""

    def __init__(self) -> None:
        self.faults: list[MillstreamError] = []

    def spark(self, entries: Mapping[str, ProfileEntry]) -> dict[str, str]:
        settings = {}
        for name, entry in entries.items():
            if name in OWNED:
                why = OWNED[name]
                self.faults.append(fault("SPARK_SETTING_REFUSED", at=entry.at, name=name, why=why))
                continue
            try:
                settings[name] = self._spark_text(name, entry)
            except _RefusedValueError:
                continue
        return settings

    def _spark_text(self, name: str, entry: ProfileEntry) -> str:
        text = _as_spark_writes(entry.value)
        if has_variable(text) and is_on_command_line(name):
            expected = "it plainly: it is on the JVM's command line, which anyone can read"
            self._refuse_value(name, entry, expected)
        return self._text(name, entry, text)

    def bound(
        self, dataset: Source | Table | Serve, section: Mapping[Names, ProfileEntry]
    ) -> Dataset:
        """Bind what a dataset reads or leads to."""
        match dataset:
            case Source():
                return self.source(dataset, section)
            case Serve():
                return self.serve(dataset, section)
            case Alert():
                return self.alert(dataset, section)
        return self.table(dataset, section)

    def source(self, source: Source, section: Mapping[Names, ProfileEntry]) -> Source:
        try:
            return self._bound(source, section)
        except _RefusedValueError:
            return source

    def serve(self, serve: Serve, section: Mapping[Names, ProfileEntry]) -> Serve:
        """Serve an answer from one store instead of those in the code."""
        stores = [sink for sink in serve.to if isinstance(sink, StoreSink | BatchedSink)]
        bound = self._end(_Ends("serve", store_kinds(), stores, _OF_ANY_STORE), serve, section)
        return serve if bound is None else replace(serve, to=(bound,))

    def alert(self, alert: Alert, section: Mapping[Names, ProfileEntry]) -> Alert:
        """Send an alert to one destination instead of those in the code."""
        bound = self._end(_Ends("alert", destination_kinds(), alert.to), alert, section)
        return alert if bound is None else replace(alert, to=(bound,))

    def table(self, table: Table, section: Mapping[Names, ProfileEntry]) -> Table:
        """Refuse whatever does not say how a table runs: what it holds is said by the code."""
        for path, entry in section.items():
            self.faults.append(
                fault(
                    "UNKNOWN_KEY",
                    at=entry.at,
                    key=".".join(path),
                    table=f"tables.{table.name}",
                    nearest=closest(".".join(path), run_keys_of("tables")),
                    known=listed(run_keys_of("tables")),
                )
            )
        return table

    def _end(
        self, ends: _Ends, dataset: Serve | Alert, section: Mapping[Names, ProfileEntry]
    ) -> Any:
        """Make what a dataset leads to; None if something is wrong with it."""
        at, before = next(iter(section.values())).at, len(self.faults)
        entries = {path: entry for path, entry in section.items() if path}
        first = ends.in_code[0] if ends.in_code else None
        try:
            kind = self._end_kind(ends, dataset, entries.pop(("kind",), None), at)
            is_same = isinstance(first, kind)
            stay = tuple(keys_of(kind)) if is_same else ends.of_any
            in_code = {
                k: getattr(first, k) for k in stay if k in keys_of(kind) and hasattr(first, k)
            }
            values = in_code | self._values(f"{ends.of}.{dataset.name}", kind, entries)
            there = {*values, *(path[0] for path in entries)}
            self._refuse_missing(ends.of, dataset.name, kind, there, at)
        except _RefusedValueError:
            return None
        return None if len(self.faults) > before else kind(**values)

    def _end_kind(
        self, ends: _Ends, dataset: Serve | Alert, entry: ProfileEntry | None, at: Any
    ) -> type:
        known, chosen = ends.known, entry.value if entry else name_of(type(dataset.to[0]))
        if entry is not None and not isinstance(entry.value, str):
            self._refuse_value(f"{ends.of}.{dataset.name}.kind", entry, "a text")
        if chosen not in known:
            where = entry.at if entry else at
            self._refuse(
                fault(
                    "UNKNOWN_KIND",
                    at=where,
                    of=ends.of,
                    name=dataset.name,
                    kind=chosen,
                    nearest=closest(chosen, known),
                    known=listed(known),
                )
            )
        return known[chosen]

    def _refuse_missing(self, of: str, name: str, kind: type, there: set[str], at: Any) -> None:
        for key in keys_of(kind).values():
            if key.is_required and key.name not in there:
                self.faults.append(
                    fault(
                        "KEY_REQUIRED",
                        at=at,
                        of=of,
                        name=name,
                        kind=name_of(kind),
                        key=key.name,
                    )
                )

    def _bound(self, source: Source, section: Mapping[Names, ProfileEntry]) -> Source:
        at, before = next(iter(section.values())).at, len(self.faults)
        entries = {path: entry for path, entry in section.items() if path}
        kind, in_code = self._kind(source, entries.pop(("kind",), None), at)
        values = in_code | self._values(f"sources.{source.name}", kind, entries)
        there = {*values, *(path[0] for path in entries)}
        self._refuse_missing("source", source.name, kind, there, at)
        if len(self.faults) > before:
            raise _RefusedValueError
        bound = replace(source, connector=kind(**values), bound_at=at)
        gives = _columns(bound)
        if gives in (None, _columns(source)) or kind is type(source.connector):
            return bound
        # Of a connector that is wrong itself, the columns say nothing; the fault is found later.
        if not any(bound.connector.faults(source.name, at)):
            ddl = gives.to_ddl()
            self._refuse(
                fault("COLUMNS_FIXED", at=at, source=source.name, kind=name_of(kind), gives=ddl)
            )
        return bound

    def _kind(
        self, source: Source, entry: ProfileEntry | None, at: Any
    ) -> tuple[type, dict[str, Any]]:
        """Choose the connector, and what the code says of it: all if it stays the same."""
        connector: Any = source.connector
        if entry is None:
            if type(connector) not in kinds().values():
                known = tuple(kinds())
                own = name_of(type(connector))
                self._refuse(
                    fault(
                        "UNKNOWN_KIND",
                        at=at,
                        of="source",
                        name=source.name,
                        kind=own,
                        nearest=closest(own, known),
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
        if isinstance(connector, RecordOptions):
            stays |= {f.name: getattr(connector, f.name) for f in fields(RecordOptions)}
        return kind, {f.name: stays[f.name] for f in fields(kind) if f.name in stays}

    def _values(
        self, where: str, kind: type, entries: Mapping[Names, ProfileEntry]
    ) -> dict[str, Any]:
        """Read the keys of a connector, or of a table in it."""
        keys, values = keys_of(kind), dict[str, Any]()
        for name in dict.fromkeys(path[0] for path in entries):
            below = {path[1:]: entry for path, entry in entries.items() if path[0] == name}
            full, first = f"{where}.{name}", next(iter(below.values()))
            if name not in keys:
                known = list(keys)
                if kind in written_kinds():
                    known += ["kind", *run_keys_of(where.partition(".")[0])]
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
            except _RefusedValueError:
                continue
        return values

    def _value(self, where: str, key: Key, below: Mapping[Names, ProfileEntry]) -> Any:
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
        if key.is_list or (key.scalar and isinstance(entry.value, list)):
            return self._texts(where, key, entry)
        return self._scalar(where, key, entry)

    def _table(self, where: str, key: Key, below: Mapping[Names, ProfileEntry]) -> dict[str, Any]:
        if () in below and below[()].value != {}:
            self._refuse_value(where, below[()], key.expected)
        table: dict[str, Any] = {}
        for name, entry in joined({p: e for p, e in below.items() if p}).items():
            value = entry.value
            if key.holds_lists and isinstance(value, list):
                table[name] = self._texts(f"{where}.{name}", key, entry)
                continue
            if not isinstance(value, str | int | bool | float):
                expected = "a text, a number or a boolean"
                self._refuse_value(f"{where}.{name}", entry, expected)
            table[name] = self._text(where, entry, value) if isinstance(value, str) else value
        return table

    def _texts(self, where: str, key: Key, entry: ProfileEntry) -> tuple[str, ...]:
        if not isinstance(entry.value, list) or not all(isinstance(v, str) for v in entry.value):
            self._refuse_value(where, entry, key.expected)
        return tuple(self._text(where, entry, text) for text in entry.value)

    def _scalar(self, where: str, key: Key, entry: ProfileEntry) -> Any:
        value, wanted = entry.value, key.scalar or key.type
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

    def _text(self, key: str, entry: ProfileEntry, text: str) -> str:
        try:
            return expand(text, key=key, at=entry.at)
        except MillstreamError as error:
            self.faults.append(error)
            raise _RefusedValueError from error

    def _refuse_value(self, where: str, entry: ProfileEntry, expected: str) -> typing.NoReturn:
        found = got(entry.value)
        self._refuse(fault("VALUE_REFUSED", at=entry.at, key=where, got=found, expected=expected))

    def _refuse(self, error: MillstreamError) -> typing.NoReturn:
        self.faults.append(error)
        raise _RefusedValueError


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

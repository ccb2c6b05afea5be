"""A profile applied: sources that come from elsewhere, Spark settings, and all that is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from millstream.bind.entry_reader import EntryReader, RefusedValueError
from millstream.bind.kind import (
    destination_kinds,
    keys_of,
    kinds,
    name_of,
    store_kinds,
)
from millstream.bind.run_keys import run_keys_of, with_run_keys
from millstream.errors import MillstreamError, SchemaError, closest, fault, listed
from millstream.model.connector import Following
from millstream.model.dataset import Alert, Serve, Source, Table, View
from millstream.model.duration import parse_duration, to_text
from millstream.model.record import RecordOptions
from millstream.model.schema import Schema
from millstream.model.sink import BatchedSink, StoreSink
from millstream.settings.secret import has_variable
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
    binder = _Binder()
    bound = [_bound(dataset, profile, binder) for dataset in declared]
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
            binder.faults.append(
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
    return BoundApp(tuple(bound), binder.spark(profile.spark), (*profile.faults, *binder.faults))


def _bound(dataset: Dataset, profile: Profile, binder: _Binder) -> Dataset:
    section = section_of(dataset)
    if section is None or isinstance(dataset, View):
        return dataset
    entries = profile.by_name(section).get(dataset.name, {})
    if not entries:
        return dataset
    bound, left, faults = with_run_keys(dataset, section, entries)
    binder.faults.extend(faults)
    return binder.bound(bound, left) if left else bound


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


class _Binder:
    """Binds datasets to what their entries say, and collects what is wrong with those."""

    def __init__(self) -> None:
        self._read = EntryReader()

    @property
    def faults(self) -> list[MillstreamError]:
        """Everything that is wrong so far."""
        return self._read.faults

    def spark(self, entries: Mapping[str, ProfileEntry]) -> dict[str, str]:
        settings = {}
        for name, entry in entries.items():
            if name in OWNED:
                why = OWNED[name]
                self._read.faults.append(
                    fault("SPARK_SETTING_REFUSED", at=entry.at, name=name, why=why)
                )
                continue
            try:
                settings[name] = self._spark_text(name, entry)
            except RefusedValueError:
                continue
        return settings

    def _spark_text(self, name: str, entry: ProfileEntry) -> str:
        text = _as_spark_writes(entry.value)
        if has_variable(text) and is_on_command_line(name):
            expected = "it plainly: it is on the JVM's command line, which anyone can read"
            self._read.refuse_value(name, entry, expected)
        return self._read.text(name, entry, text)

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
        except RefusedValueError:
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
            self._read.faults.append(
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
        at, before = next(iter(section.values())).at, len(self._read.faults)
        entries = {path: entry for path, entry in section.items() if path}
        first = ends.in_code[0] if ends.in_code else None
        try:
            kind = self._end_kind(ends, dataset, entries.pop(("kind",), None), at)
            is_same = isinstance(first, kind)
            stay = tuple(keys_of(kind)) if is_same else ends.of_any
            in_code = {
                k: getattr(first, k) for k in stay if k in keys_of(kind) and hasattr(first, k)
            }
            values = in_code | self._read.values(f"{ends.of}.{dataset.name}", kind, entries)
            there = {*values, *(path[0] for path in entries)}
            self._read.refuse_missing(ends.of, dataset.name, kind, there, at)
        except RefusedValueError:
            return None
        return None if len(self._read.faults) > before else kind(**values)

    def _end_kind(
        self, ends: _Ends, dataset: Serve | Alert, entry: ProfileEntry | None, at: Any
    ) -> type:
        known, chosen = ends.known, entry.value if entry else name_of(type(dataset.to[0]))
        if entry is not None and not isinstance(entry.value, str):
            self._read.refuse_value(f"{ends.of}.{dataset.name}.kind", entry, "a text")
        if chosen not in known:
            where = entry.at if entry else at
            self._read.refuse(
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

    def _bound(self, source: Source, section: Mapping[Names, ProfileEntry]) -> Source:
        at, before = next(iter(section.values())).at, len(self._read.faults)
        entries = {path: entry for path, entry in section.items() if path}
        kind, in_code = self._kind(source, entries.pop(("kind",), None), at)
        values = in_code | self._read.values(f"sources.{source.name}", kind, entries)
        there = {*values, *(path[0] for path in entries)}
        self._read.refuse_missing("source", source.name, kind, there, at)
        if len(self._read.faults) > before:
            raise RefusedValueError
        bound = replace(source, connector=kind(**values), bound_at=at)
        gives = _columns(bound)
        if gives in (None, _columns(source)) or kind is type(source.connector):
            return bound
        # Of a connector that is wrong itself, the columns say nothing; the fault is found later.
        if not any(bound.connector.faults(source.name, at)):
            ddl = gives.to_ddl()
            self._read.refuse(
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
                self._read.refuse(
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
            self._read.refuse_value(f"sources.{source.name}.kind", entry, "a text")
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
            self._read.refuse(error)
        kind = kinds()[entry.value]
        stays = {"schema": connector.schema, "event_time": source.event_time}
        if isinstance(connector, RecordOptions):
            stays |= {f.name: getattr(connector, f.name) for f in fields(RecordOptions)}
        return kind, {f.name: stays[f.name] for f in fields(kind) if f.name in stays}


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

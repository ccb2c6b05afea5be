"""Every setting of an app: its value as it may be shown, and where it came from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.bind.apply import section_of
from millstream.bind.kind import keys_of, kinds, name_of
from millstream.bind.run_keys import LIVE, TRIGGER
from millstream.errors import relative
from millstream.model.dataset import Alert, Serve, Source, View
from millstream.model.duration import to_text
from millstream.settings import CACHE_VARIABLE, Setting, cache_dir
from millstream.settings.profile import joined
from millstream.settings.secret import Secret, is_private
from millstream.spark.defaults import settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.bind.apply import BoundApp
    from millstream.model.dataset import Table
    from millstream.settings.profile import Profile, ProfileEntry


def all_settings(
    bound: BoundApp, profile: Profile, of_app: Mapping[str, Setting]
) -> Mapping[str, Setting]:
    """Return every setting of an app, in the order in which people look for them."""
    file = Setting(relative(str(profile.file)), "found") if profile.file else None
    rows = {
        "profile": profile.name,
        "file": file or Setting("none", "beside the app and above, no millstream.toml"),
        **of_app,
        "cache": _cache(),
    }
    for dataset in bound.declared:
        section = section_of(dataset)
        if section is None or isinstance(dataset, View):
            continue
        entries = joined(profile.by_name(section).get(dataset.name, {}))
        if isinstance(dataset, Source):
            rows |= _source(dataset, entries)
        elif isinstance(dataset, Serve | Alert):
            rows |= _ends(section, dataset, entries)
        rows |= _run_keys(section, dataset, entries)
    return rows | _spark(bound, profile, of_app["master"].value)


def shown(name: str, value: object) -> str:
    """Write a value as it may be seen: not at all if the code has put a password there.

    >>> shown("kafka.ssl.key.password", "hunter2"), shown("header", True)
    ('(not shown)', 'true')
    """
    if is_private(name) and not isinstance(value, Secret):
        return "(not shown)"
    if isinstance(value, timedelta):
        return to_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cache() -> Setting:
    by_variable = f"environment ({CACHE_VARIABLE})"
    return Setting(str(cache_dir()), by_variable if os.environ.get(CACHE_VARIABLE) else "default")


def _source(source: Source, section: Mapping[str, ProfileEntry]) -> dict[str, Setting]:
    connector: Any = source.connector
    in_code, is_bound = f"code ({source.at})", source.bound_at is not None
    rest = "default" if is_bound and "kind" in section else in_code
    kind = section["kind"].origin if is_bound and "kind" in section else in_code
    name = f"sources.{source.name}"
    chosen: type = type(connector)
    rows = {f"{name}.kind": Setting(name_of(chosen), kind)}
    if chosen in kinds().values():
        for key in keys_of(chosen):
            for path, value in _parts(key, getattr(connector, key)):
                origin = section[path].origin if is_bound and path in section else rest
                rows[f"{name}.{path}"] = Setting(shown(path, value), origin)
    time, watermark = source.event_time, source.watermark
    in_source = {"schema": connector.schema, "event_time": time, "watermark": watermark}
    if source.event_time_from is not None:
        in_source["event_time"] = f"{time} = {source.event_time_from}"
    origins = {path.partition(".")[0]: entry.origin for path, entry in section.items()}
    rows |= {
        f"{name}.{k}": Setting(shown(k, v), origins.get(k, in_code))
        for k, v in in_source.items()
        if v is not None
    }
    return rows


def _run_keys(
    section: str, dataset: Source | Table | Serve, entries: Mapping[str, ProfileEntry]
) -> dict[str, Setting]:
    values = {LIVE: dataset.live, TRIGGER: dataset.options.trigger}
    origins = {key: entry.origin for key, entry in entries.items()}
    return {
        f"{section}.{dataset.name}.{key}": Setting(
            shown(key, value), origins.get(key, f"code ({dataset.at})")
        )
        for key, value in values.items()
        if value
    }


def _ends(
    of: str, dataset: Serve | Alert, section: Mapping[str, ProfileEntry]
) -> dict[str, Setting]:
    rows, in_code = dict[str, Setting](), f"code ({dataset.at})"
    sinks: Sequence[Any] = dataset.to
    for number, sink in enumerate(sinks):
        name = f"{of}.{dataset.name}" + (f".{number}" if len(sinks) > 1 else "")
        rows[f"{name}.kind"] = Setting(
            name_of(type(sink)), section["kind"].origin if "kind" in section else in_code
        )
        for field in fields(sink) if is_dataclass(sink) else ():
            for path, value in _parts(field.name, getattr(sink, field.name)):
                if value not in ((), ""):
                    joined_value = ", ".join(value) if isinstance(value, tuple) else value
                    origin = section[path].origin if path in section else in_code
                    rows[f"{name}.{path}"] = Setting(shown(path, joined_value), origin)
    return rows


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if is_dataclass(value):
        for field in fields(value):
            yield from _parts(f"{path}.{field.name}", getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield from _parts(f"{path}.{key}", below)
    elif value is not None:
        yield path, value


def _spark(bound: BoundApp, profile: Profile, master: str) -> dict[str, Setting]:
    """Return Spark's settings; of those that are added to ours, the user's part."""
    ours = settings(master, bound.spark, jars=(), java_flags=())
    rows = {key: Setting(value, "default") for key, value in ours.items() if value}
    origins = profile.spark
    rows |= {k: Setting(shown(k, v), origins[k].origin) for k, v in bound.spark.items()}
    rows.pop("spark.master")
    return dict(sorted(rows.items()))

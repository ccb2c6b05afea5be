"""The keys of a profile that say how a dataset runs, wherever its rows come from or go to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from millstream.declare.event_time import event_time_of
from millstream.errors import MillstreamError, fault
from millstream.model import objective
from millstream.model.batch import BOUNDS, BatchBound
from millstream.model.dataset import Source
from millstream.model.duration import parse_duration
from millstream.model.query_options import NAMES
from millstream.model.trigger import TRIGGERS, Trigger
from millstream.settings.profile import got

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.model.dataset import Serve, Table
    from millstream.settings.profile import Names, ProfileEntry

Ran = TypeVar("Ran", bound="Source | Table | Serve")
LIVE, TRIGGER, BATCH = "live", "trigger", "batch"
EVENT_TIME, WATERMARK = "event_time", "watermark"
KEEP, KEEP_QUARANTINED, KEEP_VERSIONS = "keep", "keep_quarantined", "keep_versions"
_LENGTH = 'a length of time, such as "90 days"'
EXPECTED = {
    LIVE: "true or false",
    EVENT_TIME: "a column, a SQL expression, or a table of one name with its expression",
    WATERMARK: 'a length of time such as "10 minutes"',
    TRIGGER: f"one of {TRIGGERS}",
    BATCH: BOUNDS,
    **objective.EXPECTED,
    KEEP: _LENGTH,
    KEEP_QUARANTINED: _LENGTH,
    KEEP_VERSIONS: _LENGTH,
}
"""What may be written."""
SHAPES: Mapping[str, Mapping[str, Any]] = {
    LIVE: {"type": "boolean"},
    EVENT_TIME: {"type": ["string", "object"]},
}
"""In JSON Schema, what is no text."""

_KEPT = {
    "sources": (KEEP, KEEP_VERSIONS),
    "alert": (KEEP, KEEP_VERSIONS),
    "tables": (KEEP_QUARANTINED, KEEP_VERSIONS),
}


def run_keys_of(section: str) -> tuple[str, ...]:
    """Return the keys that each dataset of a section may have."""
    keys = (TRIGGER, BATCH, *objective.OBJECTIVES, *_KEPT.get(section, ()))
    return (LIVE, EVENT_TIME, WATERMARK, *keys) if section == "sources" else keys


def with_run_keys(
    dataset: Ran, section: str, entries: Mapping[Names, ProfileEntry]
) -> tuple[Ran, dict[Names, ProfileEntry], list[MillstreamError]]:
    """Apply the keys that say how a dataset runs.

    Returns:
        The dataset, the entries that are left, and what is wrong with those that were read.
    """
    left, values, faults = dict(entries), dict[str, Any](), list[MillstreamError]()
    for key in run_keys_of(section):
        own = {path: left.pop(path) for path in [*left] if path[:1] == (key,)}
        if not own:
            continue
        entry = next(iter(own.values()))
        value = entry.value if (key,) in own else {".".join(p[1:]): e.value for p, e in own.items()}
        try:
            values |= _read(key, value, dataset)
        except ValueError:
            found = repr(value) if isinstance(value, str) else got(value)
            where = f"{section}.{dataset.name}.{key}"
            faults.append(
                fault("VALUE_REFUSED", at=entry.at, key=where, got=found, expected=EXPECTED[key])
            )
    options = {name: values.pop(name) for name in [*values] if name in NAMES}
    values["options"] = replace(dataset.options, **options)
    return replace(dataset, **values), {p: e for p, e in left.items() if p}, faults


def _read(key: str, value: object, dataset: Source | Table | Serve) -> dict[str, Any]:
    """Return the fields of a dataset that a key sets.

    Raises:
        ValueError: The value is not what may be written.
    """
    if key == EVENT_TIME and isinstance(dataset, Source) and value is not None:
        column, expression = event_time_of(value, dataset.connector)
        return {"event_time": column, "event_time_from": expression}
    if not _is_right(key, value):
        raise ValueError(value)
    return {key: value}


def _is_right(key: str, value: object) -> bool:
    if key == LIVE:
        return isinstance(value, bool)
    if key in objective.OBJECTIVES:
        return objective.is_objective(key, value)
    known: Mapping[str, Callable[[str], object]]
    known = {TRIGGER: Trigger.parse, BATCH: BatchBound.parse}
    parse = known.get(key, parse_duration)
    try:
        return isinstance(value, str) and parse(value) is not None
    except ValueError:
        return False

"""The versions of a model as its table has them, and which is in use; without Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from millstream.lake.rollback import in_force, moment_of, read_rollbacks
from millstream.learn.columns import (
    BYTES,
    DIGEST,
    DRIFT,
    KIND,
    LEARNT,
    LIBRARY,
    METRICS,
    NAME,
    RECENT,
    VERSION,
)
from millstream.learn.pickled import check_digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from millstream.errors import Location
    from millstream.lake.rollback import Rollback
    from millstream.model.dataset import Model

NONE = ""
"""The version that a query scores with before there is one."""
BROUGHT = (BYTES, LIBRARY, DIGEST)


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """A version of a model."""

    version: str
    """The time up to which it has learnt all rows."""
    key: str | None
    """Of a model that learns for each key."""
    learnt: int
    """How many rows it has learnt."""
    metrics: dict[str, float | None]
    recent: dict[str, float | None]
    """The same over the last rows."""
    made_with: str
    digest: str
    size: int
    """How many bytes it has."""
    state: str = ""
    """`in use`, or `rolled back` if what it had learnt last is forgotten."""


def placed_rollbacks(folder: Path | None) -> tuple[Rollback, ...]:
    """Return the returns of a model that count."""
    asked = read_rollbacks(folder) if folder is not None else ()
    return tuple(one for one in asked if one.at_us is not None)


def used_versions(
    stored: Iterable[Mapping[str, Any]],
    key: Sequence[str],
    version: str,
    rollbacks: tuple[Rollback, ...],
    *,
    is_pinned: bool,
) -> dict[tuple[Any, ...], str]:
    """Return which version of each key is in use.

    Args:
        stored: The names of versions, with their keys.
        key: The columns of a key.
        version: The newest one to consider.
        rollbacks: To earlier versions.
        is_pinned: Whether returns after that version do not count.
    """
    names: dict[tuple[Any, ...], list[str]] = {}
    for row in sorted(stored, key=lambda row: str(row[NAME])):
        if row[NAME] <= version:
            names.setdefault(tuple(row[name] for name in key), []).append(row[NAME])
    if is_pinned:
        rollbacks = tuple(one for one in rollbacks if (one.at_us or 0) < moment_of(version))
    used = {of: in_force(found, rollbacks) for of, found in names.items()}
    return {of: name for of, name in used.items() if name is not None}


def named_version(time: str) -> str | None:
    """Return the name of the version of a time; None if it is no time.

    >>> named_version("2026-01-01 12:00"), named_version("the last")
    ('2026-01-01T12:00:00Z', None)
    """
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return None
    moment = moment.astimezone(UTC) if moment.tzinfo else moment
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def versions_of(
    path: Path, key: Sequence[str] = (), rollbacks: Path | None = None
) -> tuple[ModelVersion, ...]:
    """List the versions that a table holds, the newest first; without Spark.

    Args:
        path: The table.
        key: Of a model that learns for each key.
        rollbacks: The folder that says to which versions it was rolled back.
    """
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    names = (*key, NAME, LEARNT, METRICS, RECENT, LIBRARY, DIGEST)
    columns = {name: ds.field(name) for name in names}
    columns[BYTES] = pc.binary_length(ds.field(BYTES))
    stored = stored_versions(str(path), columns).to_pylist()
    newest = max((row[NAME] for row in stored), default=NONE)
    placed = placed_rollbacks(rollbacks)
    used = used_versions(stored, key, newest, placed, is_pinned=False)

    def state_of(row: Mapping[str, Any]) -> str:
        if used.get(tuple(row[name] for name in key)) == row[NAME]:
            return "in use"
        is_gone = any(one.to_us < moment_of(row[NAME]) <= (one.at_us or 0) for one in placed)
        return "rolled back" if is_gone else ""

    found = [
        ModelVersion(
            row[NAME],
            json.dumps({name: row[name] for name in key}, default=str) if key else None,
            row[LEARNT],
            dict(row[METRICS] or ()),
            dict(row[RECENT] or ()),
            row[LIBRARY],
            row[DIGEST],
            row[BYTES],
            state_of(row),
        )
        for row in stored
    ]
    return tuple(sorted(found, key=lambda one: (one.version, one.key or ""), reverse=True))


def version_read(path: Path, bound: str, rollbacks: Path) -> str | None:
    """Return the newest version among those that a query is bound to; None if there is none."""
    version, _, count = bound.partition(" ")
    if not count:
        return version or None
    names: list[Any] = stored_versions(str(path), [NAME]).column(NAME).to_pylist()
    known = sorted(name for name in names if name <= version)
    return in_force(known, placed_rollbacks(rollbacks)[: int(count)])


def drifts_of(
    path: Path, time: str | None, key: Sequence[str]
) -> Iterator[tuple[datetime, int, str | None]]:
    """Return the rows at which a model drifted, from the latest on: time, rows learnt, key."""
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

    rows = DeltaTable(str(path)).to_pyarrow_dataset()
    times = [f.name for f in rows.schema if str(f.type).startswith("timestamp")]
    time = time or (times[0] if len(times) == 1 else None)
    if time is None:
        return
    columns = {"at": ds.field(time), LEARNT: ds.field(LEARNT)}
    found = rows.to_table({**columns, **{n: ds.field(n) for n in key}}, ds.field(DRIFT)).to_pylist()
    for row in sorted(found, key=lambda row: row["at"], reverse=True):
        of = json.dumps({name: row[name] for name in key}, default=str) if key else None
        yield row["at"], row[LEARNT], of


def is_model(path: Path) -> bool:
    """Return whether a table is that of a model."""
    from deltalake import DeltaTable

    names = [field.name for field in DeltaTable(str(path)).schema().fields]
    return {KIND, NAME, DIGEST} <= {*names}


def stored_versions(
    path: str, columns: list[str] | dict[str, Any], chosen: Collection[str] | None = None
) -> pa.Table:
    """Read columns of the versions that a table holds, or of those that are chosen."""
    # Slow to import, and only a command or a build that needs versions reads them.
    import pyarrow.dataset as ds
    from deltalake import DeltaTable

    rows = DeltaTable(path).to_pyarrow_dataset()
    wanted = ds.field(KIND) == VERSION
    if chosen is not None:
        wanted &= ds.field(NAME).isin(list(chosen))
    return rows.to_table(columns=columns, filter=wanted)


def last_until(path: Path, version: str) -> tuple[str, int, bytes, str] | None:
    """Return the last version that is not later than one: name, rows learnt, bytes, library."""
    names: list[Any] = stored_versions(str(path), [NAME]).column(NAME).to_pylist()
    newest = max((name for name in names if name <= version), default=None)
    if newest is None:
        return None
    columns = [NAME, LEARNT, BYTES, LIBRARY]
    [row] = stored_versions(str(path), columns, [newest]).to_pylist()
    return newest, row[LEARNT], row[BYTES], row[LIBRARY]


def read_versions(
    path: str,
    key: Sequence[str],
    used: Mapping[tuple[Any, ...], str],
    columns: Sequence[str],
    *,
    of: str,
    at: Location,
) -> list[tuple[Any, ...]]:
    """Read columns of the versions that are in use, after those of their keys.

    Raises:
        MODEL_UNREADABLE: Bytes are not those that were committed.
    """
    names = dict.fromkeys((*key, NAME, BYTES, DIGEST, *columns))
    rows = []
    for row in stored_versions(path, [*names], {*used.values()}).to_pylist():
        found = tuple(row[name] for name in key)
        if used.get(found) == row[NAME]:
            check_digest(row[BYTES], row[DIGEST], of=of, at=at)
            rows.append((*found, *(row[name] for name in columns)))
    return rows


def versions_kept(
    path: Path, model: Model, version: str, rollbacks: tuple[Rollback, ...], columns: Sequence[str]
) -> list[tuple[Any, ...]] | None:
    """Read columns of the version of each key that was in use up to a version.

    Returns:
        Rows that begin with their keys; None if the table has no such version.

    Raises:
        MODEL_UNREADABLE: Bytes are not those that were committed.
    """
    stored = stored_versions(str(path), [*model.key, NAME]).to_pylist()
    if version not in {row[NAME] for row in stored}:
        return None
    used = used_versions(stored, model.key, version, rollbacks, is_pinned=True)
    return read_versions(str(path), model.key, used, columns, of=model.name, at=model.at)

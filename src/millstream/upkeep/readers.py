"""Who reads a table version by version, and how far: old versions are kept for the slowest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from millstream.alert.deliveries import Deliveries
from millstream.checkpoint import CheckpointLog
from millstream.errors import CheckpointDamagedError
from millstream.lake.home import Home
from millstream.lake.retention import TableReader
from millstream.plan import plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from millstream.model.graph import Graph

_NOTHING = -1
_OF_DELIVERY = "delivery of "


def readers_of(
    home: Home, graph: Graph, table: str, starting: Collection[str] = ()
) -> Iterator[TableReader]:
    """Find the readers of a table.

    Args:
        home: Where it is.
        graph: What its app declares.
        table: Its name.
        starting: Queries that may begin to read it at any moment, if they have not yet.
    """
    id_ = _id(home, table)
    for query in plan(graph):
        if table in query.after and query.kind != "recompute":
            version = _version(home.checkpoint(query.name), id_)
            if version is None and query.name in starting:
                version = _NOTHING
            if version is not None:
                yield TableReader(query.name, str(home.path), version)
    yield from _references(home, id_)
    yield from _deliveries(home, table, id_)
    yield from other_readers(home, table)


def settled_readers(home: Home, graph: Graph, table: str) -> Iterator[TableReader]:
    """Find the streams of an app that does not run, each with all that it has read for good.

    A batch that was begun and not finished is not read yet.
    """
    id_ = _id(home, table)
    for query in plan(graph):
        log = CheckpointLog(home.checkpoint(query.name))
        if table in query.after and query.kind != "recompute" and log.planned >= 0:
            done = log.committed == log.planned
            version = _whole(log, log.committed, id_) if done else _NOTHING
            yield TableReader(query.name, str(home.path), version)


def _id(home: Home, table: str) -> str:
    return str(DeltaTable(str(home.table(table))).metadata().id)


def _version(checkpoint: Path, id_: str) -> int | None:
    """Return the last version that a query will not read again; None if it has not begun."""
    log = CheckpointLog(checkpoint)
    committed = log.committed
    if committed < 0:
        return _NOTHING if log.planned >= 0 else None
    found = [_whole(log, batch, id_) for batch in (committed, committed - 1) if batch >= 0]
    # Spark forces no entry of its logs to disk: after a power cut it may read the last batch again.
    return min(found) if committed else _NOTHING


def _whole(log: CheckpointLog, batch: int, id_: str) -> int:
    try:
        return log.offsets(batch).versions.get(id_, _NOTHING)
    except CheckpointDamagedError:
        # It was removed meanwhile, or is damaged: nothing is known.
        return _NOTHING


def _references(home: Home, id_: str) -> Iterator[TableReader]:
    """Find the queries that are bound to a version of the table as reference data."""
    for record in sorted(home.references("").glob("*/bound.json")):
        for bound in json.loads(record.read_text())["bound"]:
            made, _, version = str(bound["version"]).partition(" ")
            if made == id_ and version.isdigit():
                yield TableReader(record.parent.name, str(home.path), int(version))


def _deliveries(home: Home, alert: str, id_: str) -> Iterator[TableReader]:
    deliveries = Deliveries.existing(home.alerts)
    if deliveries is None:
        return
    try:
        position = deliveries.position(alert)
    finally:
        deliveries.close()
    if position is not None and position.table == id_:
        yield TableReader(_OF_DELIVERY + alert, str(home.path), position.version)


def other_readers(home: Home, table: str) -> Iterator[TableReader]:
    """Find the apps that have registered: how far they are is in their own homes."""
    id_ = _id(home, table)
    for file in sorted(home.readers.glob("*.json")):
        entry = json.loads(file.read_text())
        if entry["table"] != table:
            continue
        other = Home(home.path / entry["home"])
        # A live source is read by other queries than its own.
        own = other.checkpoint(entry["source"])
        folders = [own] if own.exists() else sorted(own.parent.glob("*"))
        known = [_version(folder, id_) for folder in folders if _reads(folder, id_)]
        version = min((v for v in known if v is not None), default=_NOTHING)
        yield TableReader(entry["source"], str(other.path), version)


def _reads(checkpoint: Path, id_: str) -> bool:
    log = CheckpointLog(checkpoint)
    try:
        return log.planned >= 0 and id_ in log.offsets(log.planned).versions
    except CheckpointDamagedError:
        return True

"""Repair of checkpoints: back to the last batch that is whole, the smallest remedy first.

A batch that the table holds is skipped when Spark replays it, so the end of a log can be taken away
or written again. What cannot be mended is computed again from what is landed. Whatever is removed
or rewritten is kept in the home, under `aside`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.checkpoint.checksum import seal_path, write_sealed
from millstream.checkpoint.health import damage_of, examine
from millstream.errors import fault, listed
from millstream.lake.lease import Lease
from millstream.model.dataset import Source, Table
from millstream.repair.mend import Mender, Remedy, UnmendableError

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.lake.home import Home
    from millstream.model.graph import Graph

_ROUNDS = 3
"""What was written again may bring to light what had been hidden behind it."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done to the checkpoints of a home."""

    remedies: tuple[Remedy, ...]
    aside: Path | None
    """Where everything is that was removed or rewritten."""


def prescribe(graph: Graph, home: Home) -> tuple[Remedy, ...]:
    """Say what a repair would do.

    Raises:
        CHECKPOINT_LOST: A source cannot be mended without losing or repeating rows.
    """
    remedies: dict[str, tuple[Remedy, ...]] = {}
    rebuilt: set[str] = set()
    checkpoints = examine(home)
    for dataset in graph.ordered:
        checkpoint = checkpoints.get(dataset.name)
        if checkpoint is None or not checkpoint.findings or dataset.name in rebuilt:
            continue
        if not isinstance(dataset, Source | Table):
            continue
        try:
            remedies[dataset.name] = Mender(dataset, home, checkpoint).remedies()
        except UnmendableError as error:
            remedy = _rebuild(graph, home, dataset.name, error)
            remedies[dataset.name] = (remedy,)
            rebuilt.update(remedy.tables)
    kept = (r for name, found in remedies.items() for r in found if name not in rebuilt or r.tables)
    return tuple(kept)


def repair(graph: Graph, home: Home, *, agreed: bool = False) -> Repair:
    """Mend every checkpoint of a home that no driver holds.

    Args:
        graph: The app that is deployed there.
        home: The home.
        agreed: Whether tables may be moved aside, to be computed again.

    Raises:
        HOME_LOCKED: A driver holds the home.
        CHECKPOINT_LOST: A source cannot be mended without losing or repeating rows.
        REPAIR_NOT_AGREED: Tables would have to be moved aside.
        CheckpointDamagedError: Some damage has no remedy.
    """
    home.verify_in_use(graph.app)
    aside = home.path / "aside" / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    done: list[Remedy] = []
    with Lease.acquire(home):
        for _ in range(_ROUNDS):
            remedies = prescribe(graph, home)
            if not remedies:
                break
            hold_to_agreement(remedies, agreed=agreed)
            for remedy in remedies:
                _carry_out(remedy, home, aside)
            done += remedies
        for name in examine(home):
            if name in graph.datasets and (left := damage_of(home, name)):
                raise left
    return Repair(tuple(done), aside if aside.exists() else None)


def hold_to_agreement(remedies: tuple[Remedy, ...], *, agreed: bool) -> None:
    """Refuse to move tables aside unless it was agreed to."""
    tables = sorted({table for remedy in remedies for table in remedy.tables})
    if tables and not agreed:
        raise fault("REPAIR_NOT_AGREED", tables=listed(tables))


def _rebuild(graph: Graph, home: Home, name: str, cause: UnmendableError) -> Remedy:
    """Have a table, and all that is made from it, computed again from what is landed."""
    live = [s.name for s in graph.sources if s.live and s.name in graph.upstream(name)]
    if live:
        lost = f"{cause.lost}; it is made from {live[0]!r}, which is live: its rows are not kept"
        file = str(home.checkpoint(name) / cause.file)
        raise fault("CHECKPOINT_LOST", query=name, file=file, lost=lost) from cause
    tables = [name, *(t.name for t in graph.tables if t.name in graph.downstream(name))]
    paths = [
        path
        for table in tables
        for path in (home.table(table), home.quarantine(table), home.checkpoint(table))
        if path.exists()
    ]
    lost = f"checkpoints/{name}/{cause.file} is lost, and with it {cause.lost}"
    what = f"computed again from what is landed: {', '.join(tables)} ({lost})"
    return Remedy(name, what, tuple(paths), tables=tuple(tables))


def _carry_out(remedy: Remedy, home: Home, aside: Path) -> None:
    replaced = [path for file in remedy.writes for path in (file, seal_path(file))]
    for path in (*remedy.removes, *replaced):
        if path.exists():
            kept = aside / path.relative_to(home.path)
            kept.parent.mkdir(parents=True, exist_ok=True)
            path.rename(kept)
    for file, text in remedy.writes.items():
        write_sealed(file, text)

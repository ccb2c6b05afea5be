"""Repair of checkpoints: back to the last batch that is whole, the smallest remedy first.

A batch that the table holds is skipped when Spark replays it, so the end of a log can be taken away
or written again. What cannot be mended is computed again from what is landed. Whatever is removed
or rewritten is kept in the home, under `aside`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.checkpoint.checksum import seal_path, write_sealed
from millstream.checkpoint.health import damage_of, examine
from millstream.errors import closest, fault, listed
from millstream.lake.lease import Lease
from millstream.model.dataset import Source, Table
from millstream.repair.mend import Mender, Remedy, UnmendableError

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.lake.home import Home
    from millstream.model.graph import Graph

_ROUNDS = 3
"""A file that is written again may reveal further damage behind it."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What was done to the checkpoints of a home."""

    remedies: tuple[Remedy, ...]
    aside: Path | None
    """Where everything that was removed or rewritten is kept."""


def prescribe(graph: Graph, home: Home) -> tuple[Remedy, ...]:
    """Return what a repair would do.

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
    aside = _aside(home)
    done: list[Remedy] = []
    with Lease.acquire(home):
        for _ in range(_ROUNDS):
            remedies = prescribe(graph, home)
            if not remedies:
                break
            check_agreement(remedies, agreed=agreed)
            for remedy in remedies:
                _carry_out(remedy, home, aside)
            done += remedies
        for name in examine(home):
            if name in graph.datasets and (left := damage_of(home, name)):
                raise left
    return Repair(tuple(done), aside if aside.exists() else None)


def rebuild(graph: Graph, home: Home, name: str, *, agreed: bool = False) -> Repair:
    """Move an answer, and all that is made from it, aside; the next run computes it again.

    Args:
        graph: The app that is deployed there.
        home: A home that no driver holds.
        name: Of a table, an alert or a serve.
        agreed: Whether to do it, not only to say what would be done.

    Raises:
        HOME_LOCKED: A driver holds the home.
        UNKNOWN_DATASET: The app declares no such dataset.
        REBUILD_REFUSED: The dataset cannot be computed again.
        REPAIR_NOT_AGREED: It was not agreed to.
    """
    home.verify_in_use(graph.app)
    with Lease.acquire(home):
        remedies = prescribe_rebuild(graph, home, name)
        check_agreement(remedies, agreed=agreed)
        aside = _aside(home)
        for remedy in remedies:
            _carry_out(remedy, home, aside)
    return Repair(remedies, aside if aside.exists() else None)


def prescribe_rebuild(graph: Graph, home: Home, name: str) -> tuple[Remedy, ...]:
    """Return what a rebuild of one answer would do: one step, or none if nothing is stored."""
    known = graph.datasets
    if name not in known:
        nearest = closest(name, known)
        raise fault("UNKNOWN_DATASET", name=name, nearest=nearest, known=listed(known))
    if (kind := known[name].kind) in ("source", "view"):
        raise fault("REBUILD_REFUSED", dataset=name, why=f"it is a {kind}, not an answer")
    if live := _live_input(graph, name):
        why = f"it is made from {live!r}, which is live: its rows are not stored"
        raise fault("REBUILD_REFUSED", dataset=name, why=why)
    remedy = _recomputed(graph, home, name)
    return (remedy,) if remedy.removes else ()


def check_agreement(remedies: tuple[Remedy, ...], *, agreed: bool) -> None:
    """Refuse to move tables aside unless that was agreed to."""
    tables = sorted({table for remedy in remedies for table in remedy.tables})
    if tables and not agreed:
        raise fault("REPAIR_NOT_AGREED", tables=listed(tables))


def _rebuild(graph: Graph, home: Home, name: str, cause: UnmendableError) -> Remedy:
    """Return the remedy of a checkpoint that is lost: its table is computed again."""
    if live := _live_input(graph, name):
        lost = f"{cause.lost}; it is made from {live!r}, which is live: its rows are not kept"
        file = str(home.checkpoint(name) / cause.file)
        raise fault("CHECKPOINT_LOST", query=name, file=file, lost=lost) from cause
    remedy = _recomputed(graph, home, name)
    lost = f"checkpoints/{name}/{cause.file} is lost, and with it {cause.lost}"
    return replace(remedy, what=f"{remedy.what} ({lost})")


def _recomputed(graph: Graph, home: Home, name: str) -> Remedy:
    """Return the remedy that recomputes an answer, and all made from it, from what is landed."""
    below = graph.downstream(name)
    stored = [*(t.name for t in graph.tables), *(s.name for s in graph.serves)]
    answers = [name, *(each for each in stored if each in below)]
    paths = [
        path
        for answer in answers
        for path in (home.table(answer), home.quarantine(answer), home.checkpoint(answer))
        if path.exists()
    ]
    what = f"computed again from what is landed: {', '.join(answers)}"
    return Remedy(name, what, tuple(paths), tables=tuple(answers))


def _live_input(graph: Graph, name: str) -> str | None:
    upstream = graph.upstream(name)
    return next((s.name for s in graph.sources if s.live and s.name in upstream), None)


def _aside(home: Home) -> Path:
    return home.path / "aside" / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"


def _carry_out(remedy: Remedy, home: Home, aside: Path) -> None:
    replaced = [path for file in remedy.writes for path in (file, seal_path(file))]
    for path in (*remedy.removes, *replaced):
        if path.exists():
            kept = aside / path.relative_to(home.path)
            kept.parent.mkdir(parents=True, exist_ok=True)
            path.rename(kept)
    for file, text in remedy.writes.items():
        write_sealed(file, text)

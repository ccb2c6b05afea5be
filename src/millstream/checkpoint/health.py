"""Whether queries can continue from the checkpoints of a home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint import Checkpoint, TableProgress
from millstream.checkpoint.inspect import temporary_files
from millstream.errors import MillstreamError, fault
from millstream.lake.home import QUARANTINE
from millstream.lake.log import facts_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from millstream.lake.home import Home
    from millstream.lake.log import Facts

_WITHOUT_CHECKPOINT = ("", "recompute", "batch")
"""The query ids of tables that no streaming query writes."""


def examine(home: Home, *, deep: bool = True) -> Mapping[str, Checkpoint]:
    """Look at every checkpoint of a home, and at those that should be there.

    Args:
        home: The home.
        deep: Whether every file of the state is read; else only sizes are checked.
    """
    folder = home.path / "checkpoints"
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    tables = {name: facts_of(home.table(name)) for name in home.tables}
    for name, facts in tables.items():
        if facts.query_id not in _WITHOUT_CHECKPOINT and not name.endswith(QUARANTINE):
            names.add(name)
    return {name: _checkpoint(home, name, tables.get(name), deep=deep) for name in sorted(names)}


def make_ready(query: str, path: Path, held: Facts) -> None:
    """Check that Spark can continue from a checkpoint; of the state, only the sizes are checked.

    Raises:
        CheckpointDamagedError: It cannot.
    """
    checkpoint = Checkpoint(path, TableProgress(held.query_id, held.batch), deep=False)
    if checkpoint.last < 0:
        # Before the first batch, Spark mistakes any file for the data of another query.
        for file in temporary_files(path):
            file.unlink(missing_ok=True)
    for finding in checkpoint.damage:
        # A checkpoint that does not match its table has errors of its own.
        if finding.part != "table":
            raise _damaged(query, checkpoint, finding.file, finding.what)


def damage_of(home: Home, query: str) -> MillstreamError | None:
    """Return the damage in the checkpoint of a query that failed, if there is any."""
    table = home.table(query)
    if query not in home.tables or not home.checkpoint(query).exists():
        return None
    checkpoint = _checkpoint(home, query, facts_of(table))
    for finding in checkpoint.damage:
        return _damaged(query, checkpoint, finding.file, finding.what)
    return None


def _checkpoint(home: Home, name: str, facts: Facts | None, *, deep: bool = True) -> Checkpoint:
    held = TableProgress(facts.query_id, facts.batch) if facts is not None else TableProgress()
    return Checkpoint(home.checkpoint(name), held, deep=deep, has_table=not home.is_served(name))


def _damaged(query: str, checkpoint: Checkpoint, file: str, why: str) -> MillstreamError:
    home = checkpoint.path.parent.parent
    return fault(
        "CHECKPOINT_DAMAGED", query=query, file=str(checkpoint.path / file), why=why, home=str(home)
    )

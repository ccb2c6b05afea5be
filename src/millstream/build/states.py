"""The state of keys in a checkpoint: whether it can be continued, and reading it while it runs."""

from __future__ import annotations

from functools import reduce
from itertools import zip_longest
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from millstream.checkpoint import CheckpointLog
from millstream.checkpoint.state import operators_with
from millstream.errors import closest, fault, listed
from millstream.lake.kept_states import described_states, read_states, write_states
from millstream.model.state import KeptOperator, KeptState
from millstream.operators.state.buckets import EARLIER
from millstream.operators.state.decode import decoded
from millstream.operators.state.rows import name_in_checkpoint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.lake.home import Home
    from millstream.model.dataset import Serve, Table
    from millstream.model.state import Kept


def continued(states: Sequence[Kept], query: Table | Serve, home: Home) -> tuple[Kept, ...]:
    """Return what functions and operators keep from now on, if they can continue what is there.

    Raises:
        STATE_CHANGED: The checkpoint holds another state.
    """
    checkpoint = home.checkpoint(query.name)
    if operators_with(checkpoint, f'"{EARLIER}"'):
        why = "an earlier Millstream wrote it, in a form that this one does not read"
        raise fault(
            "STATE_CHANGED",
            at=query.at,
            function=query.name,
            query=query.name,
            changes=why,
            back="",
        )
    stored = read_states(home, query.name)
    if stored is None or CheckpointLog(checkpoint).planned < 0:
        return tuple(states)
    return tuple(_continue_or_raise(was, now, query) for was, now in zip_longest(stored, states))


def kept_states(name: str, home: Home) -> tuple[Kept, ...] | None:
    """Return what functions and operators keep in a checkpoint; None if it has not run."""
    if CheckpointLog(home.checkpoint(name)).planned < 0:
        return None
    return read_states(home, name) or ()


def keep_states(states: Sequence[Kept], query: Table | Serve, home: Home) -> None:
    """Note in the home what functions and operators keep."""
    write_states(home, query.name, continued(states, query, home))


def _continue_or_raise(was: Kept | None, now: Kept | None, query: Table | Serve) -> Kept:
    """Return what is kept from now on, if it can continue what was kept."""
    if was is None:
        changes: tuple[str, ...] = ("it is new",)
    else:
        changes = _changes(was, now) if now else ("it is called no longer",)
    if changes or now is None:
        at = now.at if isinstance(now, KeptOperator) else None
        name = next(kept.name for kept in (now, was) if kept)
        raise fault(
            "STATE_CHANGED",
            at=at or query.at,
            function=name,
            query=query.name,
            changes="; ".join(changes),
            back="declare it as it was, or ",
        )
    if isinstance(was, KeptOperator) and isinstance(now, KeptOperator):
        return was.grown(now)
    return now


def _changes(was: Kept, now: Kept) -> tuple[str, ...]:
    match was, now:
        case (KeptState(), KeptState()) if was.name == now.name:
            return tuple(was.changes(now))
        case (KeptOperator(), KeptOperator()) if was.name == now.name:
            return tuple(was.changes(now))
        case _:
            return (f"{was.name!r} was in its place",)


def read_state(spark: SparkSession, home: Home, name: str) -> DataFrame:
    """Read the state of a function, or of the query that calls it, after its last batch.

    One row for each key: its columns, those of its state, `_timers` and how many rows wait for
    the watermark, `_waiting`. If the query calls the function several times, each call has its own.

    Raises:
        UNKNOWN_STATE: Nothing by this name keeps state, or several do.
    """
    described = described_states(home)
    kept = {f"{query}.{s.name}": (query, s) for query, s in described if isinstance(s, KeptState)}
    found = [
        one
        for full, one in kept.items()
        if name in (full, one[0], one[1].name) and _operators(home.checkpoint(one[0]), one[1].name)
    ]
    if len(found) != 1:
        raise fault("UNKNOWN_STATE", name=name, nearest=closest(name, kept), known=listed(kept))
    query, state = found[0]
    checkpoint = home.checkpoint(query)
    _ = spark.streams  # Starts Spark's state coordinator, without which no state is loaded.
    if CheckpointLog(checkpoint).committed < 0:
        return decoded(spark.createDataFrame([], "part INT, packed BINARY"), state)
    calls = (_entries(spark, checkpoint, o, state) for o in _operators(checkpoint, state.name))
    return reduce(DataFrame.unionAll, (decoded(entries, state) for entries in calls))


def _entries(spark: SparkSession, checkpoint: Path, operator: str, state: KeptState) -> DataFrame:
    entries = (
        spark.read.format("statestore")
        .option("operatorId", operator)
        .option("stateVarName", name_in_checkpoint(state.name))
        .load(str(checkpoint))
    )
    return entries.select("user_map_key.part", "user_map_value.packed")


def _operators(checkpoint: Path, function: str) -> list[str]:
    """Find the operators that keep the state of a function, one for each call."""
    return operators_with(checkpoint, f'"{name_in_checkpoint(function)}"')

"""The contract of sinks: each crash point, retries, a zombie, a replay that differs."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from millstream.testing.contract.report import Report, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Row = Mapping[str, Any]


class DrivenStore(Protocol):
    """A sink as the suite drives it: one driver's connection to a store that outlives it."""

    def open(self, epoch: int) -> int:
        """Take the store over under an epoch; return the last batch it holds, -1 if none."""
        ...

    def write(self, batch: int, rows: Iterable[Row]) -> None:
        """Write a batch; if it is there already, leave it as it is."""
        ...

    def read(self) -> Iterable[Row]:
        """Everything a reader of the store sees now."""
        ...


class DiesError(Exception):
    """The driver dies while it hands rows over."""


def check_sink(make: Callable[[str], DrivenStore]) -> Report:
    """Try a sink at every crash point, with retries, a zombie and a replay that differs.

    Args:
        make: Connects a new driver to the store of a name; each trial has a store of its own.
    """
    return Report(tuple(trial(partial(make, name)) for name, trial in _TRIALS.items()))


def rows_of(batch: int, *, other: bool = False) -> list[dict[str, Any]]:
    """The rows that the suite writes as a batch: whole numbers and texts."""
    return [{"id": batch * 10 + n, "text": f"{'other ' if other else ''}{n}"} for n in range(4)]


def _batches_one_by_one(connect: Callable[[], DrivenStore]) -> Trial:
    store = connect()
    store.open(1)
    for batch in range(3):
        store.write(batch, rows_of(batch))
    return judge("batches are kept, one after another", store, range(3))


def _remembers_its_last_batch(connect: Callable[[], DrivenStore]) -> Trial:
    store = connect()
    begins = store.open(1)
    store.write(0, rows_of(0))
    later = connect().open(2)
    trial = judge("a new driver gets the last batch", store, range(1))
    if (begins, later) == (-1, 0):
        return trial
    return replace(trial, repeats=True, found=f"open() gave {begins} before and {later} after")


def _crash_before_the_write(connect: Callable[[], DrivenStore]) -> Trial:
    _write(connect, 1, 0)
    connect().open(2)
    return judge("crash before the write", _write(connect, 3, 1), range(2))


def _crash_during_the_write(connect: Callable[[], DrivenStore]) -> Trial:
    name, store = "crash during the write, then a retry", _write(connect, 1, 0)
    with suppress(DiesError):
        store.write(1, _dying(rows_of(1)))
    torn = judge(name, connect(), range(1))
    if not torn.is_passed:
        return replace(torn, repeats=True, found=f"a part is visible: {torn.found}")
    return judge(name, _write(connect, 2, 1), range(2))


def _crash_after_the_write(connect: Callable[[], DrivenStore]) -> Trial:
    _write(connect, 1, 0)
    return judge("crash after the write, then a retry", _write(connect, 2, 0), range(1))


def _retry_by_the_same_driver(connect: Callable[[], DrivenStore]) -> Trial:
    store = _write(connect, 1, 0)
    store.write(0, rows_of(0))
    return judge("retry with the same batch", store, range(1))


def _replay_that_differs(connect: Callable[[], DrivenStore]) -> Trial:
    name = "replay with different content"
    _write(connect, 1, 0)
    later = connect()
    later.open(2)
    try:
        later.write(0, rows_of(0, other=True))
    except Exception as refusal:
        return _refused(judge(name, connect(), range(1)), refusal)
    return judge(name, connect(), range(1))


def _zombie(connect: Callable[[], DrivenStore]) -> Trial:
    name, zombie = "a driver that was overtaken writes nothing", _write(connect, 1, 0)
    _write(connect, 2, 1)
    try:
        zombie.write(2, rows_of(2, other=True))
    except Exception as refusal:
        return _refused(judge(name, connect(), range(2)), refusal)
    return judge(name, connect(), range(2))


_TRIALS: dict[str, Callable[[Callable[[], DrivenStore]], Trial]] = {
    "plain": _batches_one_by_one,
    "memory": _remembers_its_last_batch,
    "before": _crash_before_the_write,
    "during": _crash_during_the_write,
    "after": _crash_after_the_write,
    "retry": _retry_by_the_same_driver,
    "differs": _replay_that_differs,
    "zombie": _zombie,
}


def _write(connect: Callable[[], DrivenStore], epoch: int, batch: int) -> DrivenStore:
    store = connect()
    store.open(epoch)
    store.write(batch, rows_of(batch))
    return store


def _refused(trial: Trial, refusal: Exception) -> Trial:
    found = f"refused with {type(refusal).__name__}"
    return replace(trial, found=found) if trial.is_passed else trial


def _dying(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield from rows[: len(rows) // 2]
    raise DiesError


def judge(name: str, store: DrivenStore, batches: range) -> Trial:
    """Compare what a store holds with the batches it should hold."""
    stored = Counter(_known(row) for row in store.read())
    wanted = Counter(_known(row) for batch in batches for row in rows_of(batch))
    missing, extra = wanted - stored, stored - wanted
    found = f"{stored.total()} rows, as it should be"
    if missing or extra:
        found = f"{missing.total()} rows missing, {extra.total()} that should not be there"
    return Trial(name, bool(missing), bool(extra), found)


def _known(row: Row) -> tuple[Any, Any]:
    return int(row["id"]), str(row["text"])

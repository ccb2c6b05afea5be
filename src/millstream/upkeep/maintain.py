"""Maintenance of the tables of a home: beside the batches of a run, or while nothing runs.

It rests nine times as long as it has worked, so it takes a tenth of a core at most. Files are
written beside the batches, at the lowest priority; only the commit that names them waits for a
moment between two.
"""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Literal

from millstream.checkpoint import CheckpointLog
from millstream.errors import MillstreamError, OvertakenError, concealed, fault
from millstream.lake.compaction import (
    SIZES,
    Compacted,
    FileSizes,
    at_lowest_priority,
    at_once,
    can_compact,
    compact,
    plan,
)
from millstream.lake.delta import FencedTable
from millstream.lake.home import QUARANTINE
from millstream.lake.lease import holder_of
from millstream.lake.log import checkpoints, facts_at, first_version, versions
from millstream.lake.maintenance import (
    Maintained,
    Request,
    Requests,
    read_maintained,
    record_maintained,
)
from millstream.lake.retention import Retention, choose_cut, cut, delete_orphans, drop_rows
from millstream.lake.stored import stored_files
from millstream.model.dataset import Table
from millstream.model.duration import parse_duration
from millstream.model.query_options import UNDECLARED
from millstream.upkeep.backup import take_snapshot
from millstream.upkeep.done import Done, UpkeepReports
from millstream.upkeep.maintained_query import Interruptible
from millstream.upkeep.readers import readers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from millstream.lake.compaction import Between
    from millstream.lake.home import Home
    from millstream.lake.lease import Lease
    from millstream.lake.retention import TableReader
    from millstream.model.graph import Graph
    from millstream.observe import Event
    from millstream.upkeep.maintained_query import MaintainedQuery

_STAGING = "staging"
_ANSWER_EVERY_S = 0.1


class Effort(Enum):
    """How much is looked at."""

    QUICK = "what has changed"
    USUAL = "what has changed, and what killed drivers left, once"
    WHOLE = "everything"


@dataclass(frozen=True, slots=True)
class UpkeepOptions:
    """How tables are maintained."""

    unasked: bool = True
    """Whether a run maintains its tables without a request."""
    sizes: FileSizes = SIZES
    cut_at_least: int = 100
    """Versions: fewer are not worth reading the log for."""
    look_every_s: float = 5.0
    """How often a run looks whether anything is to be done."""
    rest: float = 9
    """How many times as long as it has worked it rests."""


USUAL = UpkeepOptions()


class Upkeep:
    """The maintenance of all tables of a home, step by step."""

    def __init__(
        self,
        graph: Graph,
        lease: Lease,
        queries: Sequence[MaintainedQuery] = (),
        options: UpkeepOptions = USUAL,
        report: Callable[[Event], None] = lambda _: None,
    ) -> None:
        self._graph, self._lease, self._home, self.queries = graph, lease, lease.home, queries
        self.options, self._reports = options, UpkeepReports(report)
        self._tables: dict[str, FencedTable] = {}
        self._seen: dict[str, int] = {}

    def steps(self, effort: Effort = Effort.USUAL) -> Iterator[Done]:
        """Maintain each table; after each step, the caller decides when the next one is.

        Raises:
            OvertakenError: A later driver has taken the home.
        """
        for name in self._home.tables:
            self._lease.hold()
            try:
                yield from self._maintained(name, effort)
            except OvertakenError:
                raise
            except Exception as error:
                # A full disk, or damage: it is recorded, and tried again at the next look.
                self._record_trouble(name, error)

    def _record_trouble(self, name: str, error: Exception) -> None:
        cause = concealed(f"{type(error).__name__}: {error}")
        with suppress(OSError, ValueError):
            known = read_maintained(self._home, name)
            record_maintained(self._home, name, replace(known, trouble=cause))
            if cause != known.trouble:
                self._reports.fail(name, cause)

    def _maintained(self, name: str, effort: Effort) -> Iterator[Done]:
        table, known = self._table(name), read_maintained(self._home, name)
        version = table.snapshot().version()
        seen = self._seen.get(name)
        is_whole = effort is Effort.WHOLE
        if seen is not None and not is_whole and version < seen + self.options.sizes.together:
            return
        self._seen[name] = version
        for done in self._steps_of(table, name, effort):
            # At once: the next step may come much later, or never.
            known = known.plus(done.compacted, done.deleted, done.rows_dropped)
            record_maintained(self._home, name, known)
            self._reports.add(name, done)
            yield done
        looks = is_whole or (seen is None and effort is Effort.USUAL)
        if looks and (left := delete_orphans(table)).files:
            known = known.plus(Compacted(), left, 0)
            self._reports.add(name, Done(deleted=left))
            yield Done(deleted=left)
        slowest = choose_cut(table.path, self.retention(name), self._readers(name)).waits_for
        size = sum(file.size for file in stored_files(table.snapshot()))
        found = replace(known, waits_for=slowest, trouble=None).sampled(size, time.time())
        if found != read_maintained(self._home, name):
            record_maintained(self._home, name, found)

    def _steps_of(self, table: FencedTable, name: str, effort: Effort) -> Iterator[Done]:
        between, staging, sizes = self._between(name), self._staging(), self.options.sizes
        # A table whose files come faster than they are compacted must not keep the others waiting.
        for _ in sizes.tiers if effort is Effort.WHOLE else (1,):
            if can_compact(table.snapshot()) and not self._is_about_to_be_read(name):
                for group in plan(table.stored(), sizes, now_ms=time.time_ns() // 1_000_000):
                    yield Done(compacted=compact(table, group, staging, between))
        retention = self.retention(name)
        if retention.rows is not None and (rows := drop_rows(table, retention.rows)):
            yield Done(rows_dropped=rows)
        least = self.options.cut_at_least
        if effort is Effort.WHOLE:
            self._checkpoint(table)
            least = 1
        chosen = choose_cut(table.path, retention, self._readers(name))
        if chosen.first >= versions(table.path).start + least:
            yield Done(deleted=cut(table, chosen.first))
        # Last: a table that cannot be prepared is merged, and maintained all the same.
        if (key := self._key_to_prepare(table, name)) is not None:
            at_lowest_priority(partial(table.prepare, key))
            between(partial(_delete_in_place, table, key))
            yield Done()

    def _key_to_prepare(self, table: FencedTable, name: str) -> tuple[str, ...] | None:
        """Return the key of an update table that has become too large to be merged."""
        dataset = self._graph.datasets.get(name)
        if not isinstance(dataset, Table) or dataset.mode != "update":
            return None
        size = sum(file.size for file in stored_files(table.snapshot()))
        if size < self.options.sizes.merged or not table.can_delete_in_place(dataset.key):
            return None
        return dataset.key

    def _is_about_to_be_read(self, name: str) -> bool:
        """Return whether a query begins with a snapshot: its first batch is so many files of it."""
        if first_version(self._home.table(name)) == 0:
            return False
        readers = (each.query for each in self.queries if not each.is_over)
        return any(
            CheckpointLog(self._home.checkpoint(query.name)).planned < 0
            for query in readers
            if name in query.after and query.kind != "recompute"
        )

    def _checkpoint(self, table: FencedTable) -> None:
        """Write a checkpoint of a table that has changed much since the last one."""
        version, last = table.snapshot().version(), max(checkpoints(table.path), default=0)
        if version >= last + self.options.sizes.together and facts_at(table.path, version):
            table.checkpoint()

    def retention(self, name: str) -> Retention:
        """Return how much of the past of a table is kept, as it is declared."""
        dataset = self._graph.datasets.get(name.removesuffix(QUARANTINE))
        options = dataset.options if dataset else UNDECLARED
        rows = options.keep_quarantined if name.endswith(QUARANTINE) else options.keep
        kept = self._graph.keep_versions_of(dataset)
        return Retention(parse_duration(kept), parse_duration(rows) if rows else None)

    def _table(self, name: str) -> FencedTable:
        if name not in self._tables:
            path = self._home.table(name)
            self._tables[name] = FencedTable(path, name=name, epoch=self._lease.epoch)
        return self._tables[name]

    def _readers(self, name: str) -> list[TableReader]:
        starting = [query.query.name for query in self.queries]
        return list(readers_of(self._home, self._graph, name, starting))

    def _between(self, name: str) -> Between:
        """Return how a commit is made between two batches of the query that writes a table."""
        writer = name.removesuffix(QUARANTINE)
        for query in self.queries:
            if query.query.name == writer and isinstance(query.running, Interruptible):
                return query.running.before_next_batch
        return at_once

    def _staging(self) -> Path:
        folder = self._home.maintenance / _STAGING
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def _delete_in_place(table: FencedTable, key: Sequence[str]) -> bool:
    table.delete_in_place(key)
    return True


class BackgroundUpkeep:
    """Maintenance beside the batches of a run."""

    def __init__(self, upkeep: Upkeep, home: Home) -> None:
        self._upkeep, self._home, self._unasked = upkeep, home, upkeep.options.unasked
        self._requests = Requests(home)
        self._halt = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Maintain from now on."""
        self._thread = threading.Thread(target=self._work, daemon=True, name="maintenance")
        self._thread.start()

    def finish(self, keep_on: Callable[[], bool]) -> None:
        """Maintain once, at the end of a run that was not maintained, while it may go on."""
        if not self._unasked:
            return
        with suppress(MillstreamError):
            for _ in self._upkeep.steps(Effort.QUICK):
                if not keep_on():
                    return

    def close(self) -> None:
        """Let the step that is under way finish, then stop."""
        self._halt.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        # A later driver has the home, or it is gone: this driver is about to end, and says why.
        with suppress(MillstreamError):
            while not self._halt.wait(self._upkeep.options.look_every_s):
                match asked := self._requests.asked:
                    case None:
                        if self._unasked:
                            self._paced(Effort.USUAL)
                    case Request(act="maintain"):
                        self._paced(Effort.WHOLE)
                    case _:
                        take_snapshot(self._home, self._upkeep.queries)
                if asked is not None:
                    self._requests.answer(asked)

    def _paced(self, effort: Effort) -> None:
        begun = time.monotonic()
        for _ in self._upkeep.steps(effort):
            if self._halt.wait(self._upkeep.options.rest * (time.monotonic() - begun)):
                return
            begun = time.monotonic()
        self._halt.wait(self._upkeep.options.rest * (time.monotonic() - begun))


def maintain(graph: Graph, lease: Lease) -> Mapping[str, Maintained]:
    """Do all that is to be done to the tables of a home, while nothing else runs there."""
    for _ in Upkeep(graph, lease).steps(Effort.WHOLE):
        continue
    return {name: read_maintained(lease.home, name) for name in lease.home.tables}


def by_driver(home: Home, act: Literal["maintain", "snapshot"], *, wait_s: float) -> bool:
    """Have the driver of a home do something; return whether there is one, and it is done.

    Raises:
        MAINTENANCE_WAITS: It has not answered in time.
    """
    if (holder := holder_of(home)) is None:
        return False
    requests = Requests(home)
    request, until = requests.ask(act), time.monotonic() + wait_s
    while not requests.is_answered(request):
        if holder_of(home) is None:
            return False
        if time.monotonic() > until:
            raise fault("MAINTENANCE_WAITS", pid=holder.pid, waited=f"{wait_s:g} s")
        time.sleep(_ANSWER_EVERY_S)
    return True

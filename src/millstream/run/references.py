"""Which version of its reference data a query reads, so that a retried batch reads it again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint import CheckpointLog
from millstream.errors import UserCodeError, fault
from millstream.lake.reference_data import BoundReference, ReferenceData
from millstream.observe import Event
from millstream.run.query import StreamRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from millstream.build.build import Built
    from millstream.lake.home import Home
    from millstream.operators.reference import Reference
    from millstream.plan import Query
    from millstream.run.supervise import Running

    Build = Callable[["QueryReferences"], Built]
    """Builds a query over the reference rows that it is to read."""

_LOOK_EVERY_S = 1.0
_AGAIN_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class Renewal:
    """How a query is built again when its reference data change."""

    references: QueryReferences
    build: Build

    @staticmethod
    def of(
        query: Query,
        home: Home,
        spark: SparkSession,
        build: Build,
        on_event: Callable[[Event], None],
    ) -> tuple[Built, Renewal]:
        """Build a stream; return with it how it is built again."""
        log = CheckpointLog(home.checkpoint(query.name))

        data = ReferenceData(home.references(query.name))

        def report(error: UserCodeError) -> None:
            on_event(Event("not_renewed", query.name, error=error))

        references = QueryReferences(data, log, spark, report)
        built = references.built(build)
        return built, Renewal(references, build)

    def frame(self) -> DataFrame:
        """Build the query over the rows that it is to read from now on."""
        return self.references.built(self.build).frame

    def begin(self, batch: int) -> None:
        """Record that a batch begins."""
        self.references.begin(batch)


class QueryReferences:
    """The reference data of one query: what it reads now, recorded before it does."""

    def __init__(
        self,
        data: ReferenceData,
        log: CheckpointLog,
        spark: SparkSession,
        on_error: Callable[[UserCodeError], None],
    ) -> None:
        self._data, self._log, self._spark, self._on_error = data, log, spark, on_error
        self._begun, self._bound = data.read()
        self._read_by: Mapping[str, Reference] = {}
        self._fresh: dict[str, BoundReference] = {}
        self._look_at = 0.0
        self._paused: dict[str, float] = {}

    def built(self, build: Build) -> Built:
        """Build a query over the newest reference rows, or those of the batch to be retried."""
        if is_retry := self._is_retry:
            self._fresh = {}
        built = build(self)
        self._read_by = built.references
        known = self._bound | self._fresh
        # What only a retried batch has seen may be asked for again, if the edit is undone.
        bound = {name: one for name, one in known.items() if is_retry or name in self._read_by}
        if bound != self._bound:
            self._bound = bound
            self._data.write(self._begun, self._bound)
        self._fresh = {}
        self._data.clear(self._bound)
        return built

    def bind(self, name: str, reference: Reference) -> DataFrame:
        """Return the rows of the version that the query reads from now on.

        Raises:
            UserCodeError: There are none from before, and they cannot be read.
        """
        if name not in self._bound and name not in self._fresh:
            self._fresh[name] = self._bind_newest(name, reference, None)
        elif not self._is_retry:
            self._look(name, reference)
        bound = self._fresh[name] if name in self._fresh else self._bound[name]
        if bound.copy is None:
            return reference.rows_of(self._spark, bound.version)
        return self._spark.read.parquet(str(self._data.copy(bound.copy)))

    @property
    def is_used(self) -> bool:
        """Whether the query reads any."""
        return bool(self._read_by)

    def begin(self, batch: int) -> None:
        """Record that a batch begins: a retry of it reads the same rows."""
        if self._read_by and batch > self._begun:
            self._begun = batch
            self._data.write(self._begun, self._bound)

    def has_changed(self, *, now: bool) -> bool:
        """Whether there are newer rows. Reads them; reports it if they cannot be read.

        Args:
            now: Whether to look at once, and not once a second, or a minute after a failure.
        """
        if now:
            self._paused = {}
        elif time.monotonic() < self._look_at:
            return False
        for name, reference in self._read_by.items():
            self._look(name, reference)
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        return bool(self._fresh)

    def _look(self, name: str, reference: Reference) -> None:
        """Read rows that have changed; if that fails, report it and keep the bound version."""
        known = self._bound.get(name)
        is_paused = time.monotonic() < self._paused.get(name, 0.0)
        if name in self._fresh or known is None or is_paused:
            return
        try:
            if reference.version(known.read_at_s) != known.version:
                self._fresh[name] = self._bind_newest(name, reference, known)
        except UserCodeError as error:
            self._paused[name] = time.monotonic() + _AGAIN_AFTER_S
            self._on_error(error)

    @property
    def _is_retry(self) -> bool:
        """Whether the next batch has begun before, and may have changed state or sink."""
        planned = self._log.planned
        return planned > self._log.committed and self._begun >= planned

    def _bind_newest(
        self, name: str, reference: Reference, known: BoundReference | None
    ) -> BoundReference:
        read_at = time.time()
        version = str(read_at) if reference.path is None else reference.version()
        is_delta = reference.is_delta
        rows = reference.rows_of(self._spark, version) if is_delta else reference.rows(self._spark)
        columns = rows.schema.simpleString()
        if known is not None and known.columns != columns:
            raise fault(
                "REFERENCE_COLUMNS",
                at=reference.at,
                what=reference.path or "the function",
                now=columns,
                before=known.columns,
            )
        copy = None if is_delta else self._copied(reference, rows)
        return BoundReference(name, version, read_at, copy, columns)

    def _copied(self, reference: Reference, rows: DataFrame) -> str:
        """Read rows to their end, which may fail where their columns were read well."""
        try:
            return self._data.copied(rows.write.parquet)
        except Exception as error:
            raise reference.unreadable(error) from error


def is_outdated(running: Running, *, now: bool = False) -> bool:
    """Whether a query is to be started again, because it reads reference data that have changed.

    Args:
        running: The query; while it runs once, it reads what was there when it began.
        now: Whether to look at once, and not once a second.
    """
    if not isinstance(running, StreamRun) or running.renewal is None or not running.is_active:
        return False
    return not running.ends_by_itself and running.renewal.references.has_changed(now=now)

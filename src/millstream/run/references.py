"""Which version of its reference data a query reads, so that a retried batch reads it again."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass
from itertools import count
from typing import TYPE_CHECKING

from millstream.checkpoint import CheckpointLog
from millstream.errors import UserCodeError, fault
from millstream.lake.durable import sync_file, sync_folder, write_durably
from millstream.observe import Event
from millstream.run.query import StreamRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.build.build import Built
    from millstream.lake.home import Home
    from millstream.operators.reference import Reference
    from millstream.plan import Query
    from millstream.run.supervise import Running

    Build = Callable[["References"], Built]
    """Builds a query over the reference rows that it is to read."""

_LOOK_EVERY_S = 1.0
_AGAIN_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class _Bound:
    """A version of reference rows."""

    name: str
    """By which the reference is known when the function that asks for it has been edited."""
    version: str
    read_at_s: float
    copy: str | None
    """The folder that holds the rows; None if they have versions of their own."""
    columns: str


@dataclass(frozen=True, slots=True)
class Renewal:
    """How a query is built again when its reference data change."""

    references: References
    build: Build

    @staticmethod
    def of(
        query: Query,
        home: Home,
        spark: SparkSession,
        build: Build,
        tell: Callable[[Event], None],
    ) -> tuple[Built, Renewal | None]:
        """Build a stream; return with it how it is renewed, if it has reference data."""
        log = CheckpointLog(home.checkpoint(query.name))

        def tell_error(error: UserCodeError) -> None:
            tell(Event("not_renewed", query.name, error=error))

        references = References(home.references(query.name), log, spark, tell_error)
        built = references.built(build)
        return built, Renewal(references, build) if references.is_used else None

    def frame(self) -> DataFrame:
        """Build the query over the rows that it is to read from now on."""
        return self.references.built(self.build).frame

    def begin(self, batch: int) -> None:
        """Take note that a batch begins."""
        self.references.begin(batch)


class References:
    """The reference data of one query: what it reads now, recorded before it does."""

    def __init__(
        self,
        folder: Path,
        log: CheckpointLog,
        spark: SparkSession,
        tell: Callable[[UserCodeError], None],
    ) -> None:
        self._folder, self._log, self._spark, self._tell = folder, log, spark, tell
        self._record = folder / "bound.json"
        self._begun, self._bound = self._read()
        self._asked: dict[str, Reference] = {}
        self._fresh: dict[str, _Bound] = {}
        self._look_at = 0.0
        self._paused: dict[str, float] = {}

    def built(self, build: Build) -> Built:
        """Build a query over the newest reference rows, or those of the batch to be retried."""
        self._asked = {}
        if is_retried := self._is_retried:
            self._fresh = {}
        built = build(self)
        known = self._bound | self._fresh
        # What only a retried batch has seen may be asked for again, if the edit is undone.
        bound = {name: one for name, one in known.items() if is_retried or name in self._asked}
        if bound != self._bound:
            self._bound = bound
            self._write()
        self._fresh = {}
        self._clear()
        return built

    def bind(self, reference: Reference) -> DataFrame:
        """Give the rows of the version that the query reads from now on.

        Raises:
            UserCodeError: There are none from before, and they cannot be read.
        """
        name = self._noted(reference)
        if name not in self._bound and name not in self._fresh:
            self._fresh[name] = self._taken(name, reference, None)
        elif not self._is_retried:
            self._look(name)
        bound = self._fresh[name] if name in self._fresh else self._bound[name]
        if bound.copy is None:
            return reference.rows_of(self._spark, bound.version)
        return self._spark.read.parquet(str(self._folder / bound.copy))

    def _noted(self, reference: Reference) -> str:
        """Take note of what is asked for; give its name, with a number if there are equal ones."""
        names = (f"{reference.name} ({number})" for number in count(1))
        name = next(name for name in names if name not in self._asked)
        self._asked[name] = reference
        return name

    @property
    def is_used(self) -> bool:
        """Whether the query reads any."""
        return bool(self._asked)

    def begin(self, batch: int) -> None:
        """Take note that a batch begins: if it is retried, it is with these rows."""
        if self._asked and batch > self._begun:
            self._begun = batch
            self._write()

    def has_changed(self, *, now: bool) -> bool:
        """Whether there are newer rows, which are then read; if they cannot be, that is told.

        Args:
            now: Whether to look at once, and not once a second, or a minute after a failure.
        """
        if now:
            self._paused = {}
        elif time.monotonic() < self._look_at:
            return False
        for name in self._asked:
            self._look(name)
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        return bool(self._fresh)

    def _look(self, name: str) -> None:
        """Read rows that have changed; if that fails, tell it, and leave bound what is bound."""
        reference, known = self._asked[name], self._bound.get(name)
        is_paused = time.monotonic() < self._paused.get(name, 0.0)
        if name in self._fresh or known is None or is_paused:
            return
        try:
            if reference.version(known.read_at_s) != known.version:
                self._fresh[name] = self._taken(name, reference, known)
        except UserCodeError as error:
            self._paused[name] = time.monotonic() + _AGAIN_AFTER_S
            self._tell(error)

    @property
    def _is_retried(self) -> bool:
        """Whether the next batch has begun before, and may have left its mark in state or sink."""
        planned = self._log.planned
        return planned > self._log.committed and self._begun >= planned

    def _taken(self, name: str, reference: Reference, known: _Bound | None) -> _Bound:
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
        return _Bound(name, version, read_at, copy, columns)

    def _copied(self, reference: Reference, rows: DataFrame) -> str:
        """Read rows to their end, which may fail where their columns were read well."""
        copy = self._folder / f"copy-{time.time_ns()}"
        try:
            rows.write.parquet(str(copy))
            _make_durable(copy)
        except Exception as error:
            shutil.rmtree(copy, ignore_errors=True)
            raise reference.unreadable(error) from error
        return copy.name

    def _read(self) -> tuple[int, dict[str, _Bound]]:
        try:
            told = json.loads(self._record.read_text())
        except FileNotFoundError:
            return -1, {}
        # Those without a name an earlier Millstream knew by their places: they are read anew.
        bound = [_Bound(**one) for one in told["bound"] if "name" in one]
        return told["begun"], {one.name: one for one in bound}

    def _write(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        told = {"begun": self._begun, "bound": [*map(asdict, self._bound.values())]}
        write_durably(self._record, json.dumps(told))

    def _clear(self) -> None:
        """Remove copies that nothing is bound to."""
        used = {bound.copy for bound in self._bound.values()}
        for folder in self._folder.glob("*-*") if self._folder.exists() else ():
            if folder.name not in used:
                shutil.rmtree(folder, ignore_errors=True)


def _make_durable(folder: Path) -> None:
    for file in folder.iterdir():
        sync_file(file)
    sync_folder(folder)


def is_outdated(running: Running, *, now: bool = False) -> bool:
    """Whether a query is to be started again, because it reads reference data that have changed.

    Args:
        running: The query; while it runs once, it reads what was there when it began.
        now: Whether to look at once, not at leisure.
    """
    if not isinstance(running, StreamRun) or running.renewal is None or not running.is_active:
        return False
    return not running.ends_by_itself and running.renewal.references.has_changed(now=now)

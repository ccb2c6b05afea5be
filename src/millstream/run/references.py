"""Which version of its reference data a query reads, so that a retried batch reads it again."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass
from itertools import count
from typing import TYPE_CHECKING

from millstream.checkpoint import CheckpointLog
from millstream.errors import ReferenceColumnsError, UserCodeError
from millstream.lake.files import sync_folder
from millstream.lake.outbox import write_durably
from millstream.observe import Event
from millstream.operators.reference import bound_by
from millstream.run.query import StreamRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.lake.home import Home
    from millstream.operators.reference import Reference
    from millstream.plan import Query
    from millstream.run.supervise import Running

    Build = Callable[[], DataFrame]

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
    within: Callable[[], AbstractContextManager[object]]
    """What holds while functions are called to build it."""

    @staticmethod
    def of(
        query: Query,
        home: Home,
        spark: SparkSession,
        build: Build,
        within: Callable[[], AbstractContextManager[object]],
    ) -> tuple[DataFrame, Renewal | None]:
        """Build a query; give with it how it is renewed, if it is a stream with reference data."""
        if query.kind == "recompute":
            return build(), None
        log = CheckpointLog(home.checkpoint(query.name))
        references = References(home.references(query.name), log, spark)
        frame = references.built(build)
        return frame, Renewal(references, build, within) if references.is_used else None

    def frame(self) -> DataFrame:
        """Build the query over the rows that it is to read from now on."""
        with self.within():
            return self.references.built(self.build)

    def begin(self, batch: int) -> None:
        """Take note that a batch begins."""
        self.references.begin(batch)


class References:
    """The reference data of one query: what it reads now, recorded before it does."""

    def __init__(self, folder: Path, log: CheckpointLog, spark: SparkSession) -> None:
        self._folder, self._log, self._spark = folder, log, spark
        self._record = folder / "bound.json"
        self._begun, self._bound = self._read()
        self._asked: dict[str, Reference] = {}
        self._fresh: dict[str, _Bound] = {}
        self._look_at = 0.0

    def built(self, build: Build) -> DataFrame:
        """Build a query over the newest reference rows, or those of the batch to be retried."""
        self._asked = {}
        if is_retried := self._is_retried:
            self._fresh = {}
        with bound_by(self):
            frame = build()
        known = self._bound | self._fresh
        # What only a retried batch has seen may be asked for again, if the edit is undone.
        bound = {name: one for name, one in known.items() if is_retried or name in self._asked}
        if bound != self._bound:
            self._bound = bound
            self._write()
        self._fresh = {}
        self._clear()
        return frame

    def bind(self, reference: Reference) -> DataFrame:
        """Give the rows of the version that the query reads from now on."""
        name = self._noted(reference)
        known = self._bound.get(name)
        if name not in self._fresh and (
            known is None or (not self._is_retried and self._is_changed(reference, known))
        ):
            self._fresh[name] = self._taken(name, reference, known)
        bound = self._fresh[name] if name in self._fresh else self._bound[name]
        if bound.copy is None:
            return reference.rows(self._spark, bound.version)
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
        """Whether there are newer rows, which are then read.

        Args:
            now: Whether to look at once, and not once a second, or a minute after a failure.

        Raises:
            UserCodeError: They cannot be read, or have other columns; what is bound stays bound.
        """
        if not now and time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + _AGAIN_AFTER_S
        for name, reference in self._asked.items():
            known = self._bound[name]
            if name not in self._fresh and self._is_changed(reference, known):
                self._fresh[name] = self._taken(name, reference, known)
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        return bool(self._fresh)

    @property
    def _is_retried(self) -> bool:
        """Whether the next batch has begun before, and may have left its mark in state or sink."""
        planned = self._log.planned
        return planned > self._log.committed and self._begun >= planned

    def _is_changed(self, reference: Reference, known: _Bound) -> bool:
        return reference.version(known.read_at_s) != known.version

    def _taken(self, name: str, reference: Reference, known: _Bound | None) -> _Bound:
        read_at = time.time()
        version = str(read_at) if reference.path is None else reference.version()
        rows = reference.rows(self._spark, version)
        columns = rows.schema.simpleString()
        if known is not None and known.columns != columns:
            raise ReferenceColumnsError(
                reference.path or "the function", before=known.columns, now=columns, at=reference.at
            )
        copy = None
        if not reference.is_delta:
            copy = f"copy-{time.time_ns()}"
            rows.write.parquet(str(self._folder / copy))
            _make_durable(self._folder / copy)
        return _Bound(name, version, read_at, copy, columns)

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
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
    sync_folder(folder)


def is_outdated(running: Running, tell: Callable[[Event], None], *, now: bool = False) -> bool:
    """Whether a query is to be started again, because it reads reference data that have changed.

    Args:
        running: The query; while it runs once, it reads what was there when it began.
        tell: Who is told that they cannot be read; the query goes on as it was.
        now: Whether to look at once, not at leisure.
    """
    if not isinstance(running, StreamRun) or running.renewal is None or not running.is_active:
        return False
    try:
        return not running.ends_by_itself and running.renewal.references.has_changed(now=now)
    except UserCodeError as error:
        tell(Event("not_renewed", running.name, error=error))
        return False

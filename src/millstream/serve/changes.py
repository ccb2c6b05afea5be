"""An answer made from rows that change, on its way into stores: whole, or what changed in it.

There is no stream of it: it is computed as a batch whenever an input has changed. What a store is
to be told, if not all of it, is how it differs from the answer before, which is kept in the home.
"""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.lake.durable import sync_file, sync_folder, write_durably
from millstream.lake.files import DataFile
from millstream.lake.frontier import Publication
from millstream.lake.table import has_double, keys_of
from millstream.serve.difference import write_difference
from millstream.serve.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame

    from millstream.lake.home import Home
    from millstream.lake.log import Facts
    from millstream.lake.staging import Staged
    from millstream.serve.stores import Served

_INPUT = "input: "
"""What the versions of inputs are filed under in the outbox."""
_LOG = "log.json"


@dataclass(frozen=True)
class ChangeLog:
    """Which answers were delivered: what a checkpoint is to a stream."""

    path: Path
    outbox: Outbox

    @cached_property
    def query_id(self) -> str:
        """The id under which answers are delivered, drawn once."""
        return str(self._read()["id"])

    @property
    def committed(self) -> int:
        """The last answer that every store has."""
        return int(self._read()["batch"])

    @property
    def planned(self) -> int:
        """The last answer that any store may have."""
        committed = self.committed
        return committed + self.outbox.has(self.query_id, committed + 1)

    @staticmethod
    def begin(home: Home, name: str) -> ChangeLog:
        """Open the log of an answer; draw its id, unless there is one."""
        log = ChangeLog(home.changes(name), Outbox(home.staging(name)))
        log.path.mkdir(parents=True, exist_ok=True)
        if not (log.path / _LOG).exists():
            log._write({"id": uuid.uuid4().hex, "batch": -1})
        return log

    def commit(self, batch: int) -> None:
        """Take down that every store has an answer."""
        self._write({"id": self.query_id, "batch": batch})

    def answer(self, batch: int) -> Path:
        """Where a whole answer is."""
        return self.path / f"answer-{batch}"

    def forget_before(self, batch: int) -> None:
        """Delete the answers that no difference will be taken from."""
        for folder in self.path.glob("answer-*"):
            if folder != self.answer(batch):
                shutil.rmtree(folder)

    def _read(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.path / _LOG).read_text())
        return read

    def _write(self, told: Mapping[str, Any]) -> None:
        write_durably(self.path / _LOG, json.dumps(told))


class Changes:
    """The stores of an answer made from rows that change, as whoever recomputes it writes them."""

    def __init__(self, served: Served, log: ChangeLog) -> None:
        self._served, self._log = served, log

    @property
    def facts(self) -> Facts:
        """What the store holds that is furthest behind."""
        return self._served.facts

    def hold_to_checkpoint(self) -> None:
        """Make sure that every store and the log tell the same story."""
        self._served.hold_to_checkpoint()

    def stage(self, frame: DataFrame, batch: int) -> Staged:
        """Compute an answer, unless one was computed that not every store has."""
        served, query_id = self._served, self._log.query_id
        marked = served.mark(frame)
        if kept := served.outbox.kept(query_id, batch, marked.columns):
            return kept
        if not served.has_changes:
            return served.compute(frame, served.outbox.folder)
        whole = served.compute(frame, self._log.answer(batch))
        self._refuse_double_keys(whole, batch)
        # The next difference is taken from it: without it, rows that are gone would stay.
        for file in whole.files:
            sync_file(file.path)
        for folder in (self._log.answer(batch), self._log.path):
            sync_folder(folder)
        return self._difference(whole, batch, marked.columns)

    def commit(
        self,
        staged: Staged,
        batch: int,
        query_id: str,
        inputs: Mapping[str, int] | None = None,
        published: Publication | None = None,
    ) -> None:
        """Write an answer, or what changed in it, into every store that does not have it."""
        query_id, columns = self._log.query_id, self._served.columns_marked
        known = {n.removeprefix(_INPUT): v for n, v in staged.seen.items() if n.startswith(_INPUT)}
        # An answer that was kept is of earlier inputs than those that are known of now.
        published = Publication() if known else published
        if not known:
            known = dict(inputs or {})
            seen = {**staged.seen, **{f"{_INPUT}{name}": v for name, v in known.items()}}
            staged = replace(staged, seen=seen)
            self._served.outbox.keep(staged, query_id, batch, columns)
        self._served.commit(staged, batch, query_id, known, published=published)
        self._log.commit(batch)
        self._log.forget_before(batch)

    def tell(self, told: Publication) -> None:
        """Nobody is told between two answers."""

    def _difference(self, whole: Staged, batch: int, columns: list[str]) -> Staged:
        folder = self._served.outbox.folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        changes = folder / "changes.parquet"
        before = self._log.answer(batch - 1)
        write_difference(
            changes,
            old=sorted(before.glob("*.parquet")) if before.exists() else [],
            new=[file.path for file in whole.files],
            key=self._served.key,
            gone=[name for name in columns if name in self._served.marks],
        )
        files = (DataFile.read(changes, {}),) if changes.exists() else ()
        return replace(whole, files=tuple(file for file in files if file.rows))

    def _refuse_double_keys(self, whole: Staged, batch: int) -> None:
        key = self._served.key
        if whole.files and has_double(keys_of(whole.files, key).drop_null()):
            serve = self._served.serve
            raise fault(
                "KEY_NOT_UNIQUE", at=serve.at, batch=batch, table=serve.name, key=", ".join(key)
            )

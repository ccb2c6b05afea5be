"""The sink of an answer made from rows that change: it writes the whole answer, or what changed.

There is no stream of it: it is computed as a batch whenever an input has changed. A store gets all
of it, or its difference from the answer before, which is kept in the home.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.lake.durable import sync_file, sync_folder
from millstream.lake.files import DataFile
from millstream.lake.frontier import Publication
from millstream.lake.table import has_double, keys_of
from millstream.serve.difference import write_difference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from millstream.lake.change_log import ChangeLog
    from millstream.lake.log import Facts
    from millstream.lake.staging import Staged
    from millstream.serve.serve_sink import ServeSink

_INPUT = "input: "
"""What the versions of inputs are kept under in a staged batch."""


class Changes:
    """The stores of an answer made from rows that change, seen by the query that recomputes it."""

    def __init__(self, served: ServeSink, log: ChangeLog) -> None:
        self._served, self._log = served, log

    @property
    def facts(self) -> Facts:
        """The facts of the store that is furthest behind."""
        return self._served.facts

    def check_against_checkpoint(self) -> None:
        """Check the fence of every store against the log."""
        self._served.check_against_checkpoint()

    def stage(self, frame: DataFrame, batch: int) -> Staged:
        """Compute an answer, unless one was computed that not every store has."""
        served, query_id = self._served, self._log.query_id
        marked = served.mark(frame)
        if kept := served.batches.kept(query_id, batch, marked.columns):
            return kept
        if not served.has_changes:
            return served.compute(frame, served.batches.folder)
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
            self._served.batches.keep(staged, query_id, batch, columns)
        self._served.commit(staged, batch, query_id, known, published=published)
        self._log.commit(batch)
        self._log.forget_before(batch)

    def publish(self, published: Publication) -> None:
        """Do nothing: stores get a frontier with the next answer."""

    def _difference(self, whole: Staged, batch: int, columns: list[str]) -> Staged:
        folder = self._served.batches.folder
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

"""Delta tables written exactly once: every commit is fenced by epoch and batch.

Spark writes the files; delta-rs commits them. A commit carries two transaction ids, the epoch of
the driver and the batch of the query, and is refused if any other driver has committed since this
one looked. What a batch did is told in the commit itself (its facts), so the ledger cannot disagree
with the data.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError

from millstream.crash import reach
from millstream.errors import fault
from millstream.lake.checksum import write_checksum
from millstream.lake.durable import sync_folder
from millstream.lake.log import EPOCH, FACTS, QUERY, Facts, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from millstream.lake.files import DataFile

_GONE = "_gone"
_TRIES = 5
_HISTORY_STEP = 50

__all__ = ["EPOCH", "FACTS", "Facts", "FencedTable", "facts_of", "last_facts", "last_told"]


class FencedTable:
    """A Delta table open for writing by one driver of one epoch."""

    def __init__(self, path: Path, *, name: str, epoch: int) -> None:
        self.path, self.name, self._epoch = path, name, epoch
        self._table = DeltaTable(str(path))
        self.facts = last_facts(self._table)

    @staticmethod
    def create(
        path: Path,
        *,
        schema: str,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Make an empty table of a Spark schema in JSON, unless it exists."""
        path.mkdir(parents=True, exist_ok=True)
        DeltaTable.create(
            str(path),
            Schema.from_json(schema),
            mode="ignore",
            partition_by=list(partition_by),
            configuration={"delta.checkpointInterval": "100", **(properties or {})},
        )
        write_checksum(path / "_delta_log", 0)

    @property
    def _home(self) -> Path:
        return self.path.parent.parent

    @property
    def schema(self) -> str:
        """The table's schema, as Spark's JSON."""
        return str(self._table.schema().to_json())

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The table's partition columns."""
        return tuple(self._table.metadata().partition_columns)

    @property
    def version(self) -> int:
        """The version last seen or written."""
        return int(self._table.version())

    def take(self) -> None:
        """Write this driver's epoch into the table: no earlier driver can commit from now on.

        Raises:
            OvertakenError: A later driver was here already.
        """
        self._commit(lambda properties: self._write([], "append", properties), self._transaction())
        reach("table_taken", self._home, self.name)

    def tell(self, facts: Facts) -> None:
        """Commit what is known of the table now, without rows; it is no batch."""
        before, self.facts = self.facts, replace(facts, epoch=self._epoch)
        try:
            self._commit(lambda told: self._write([], "append", told), self._transaction())
        except BaseException:
            self.facts = before
            raise
        sync_folder(self.path / "_delta_log")

    def add_columns(self, fields: str) -> None:
        """Add columns, given as a Spark schema in JSON; earlier rows have null there."""
        columns = Schema.from_json(fields).fields
        self._commit(
            lambda properties: self._table.alter.add_columns(columns, commit_properties=properties),
            self._transaction(),
        )

    def last_batch_of(self, query_id: str) -> int:
        """Say which batch of a query was committed last; -1 if none was."""
        batch = self._table.transaction_version(f"{QUERY}{query_id}")
        return -1 if batch is None else int(batch)

    def append(self, files: Iterable[DataFile], facts: Facts, *, number_from: int = 0) -> None:
        """Add files and record the batch, in one commit.

        Args:
            files: Taken from where they are.
            facts: What is known after this batch.
            number_from: What the files are numbered from, if a batch has several commits.
        """
        actions = self._move(files, facts, number_from)
        self._commit_batch(lambda properties: self._write(actions, "append", properties), facts)

    def replace(self, files: Iterable[DataFile], facts: Facts) -> None:
        """Put files in the place of all there are and record the batch, in one commit."""
        actions = self._move(files, facts)
        self._commit_batch(lambda properties: self._write(actions, "overwrite", properties), facts)

    def upsert(
        self,
        files: Sequence[DataFile],
        key: Sequence[str],
        facts: Facts,
        *,
        gone: pa.Table | None = None,
    ) -> None:
        """Update rows by key, insert those that are new and record the batch, in one commit.

        Args:
            files: The rows.
            key: The columns that identify a row.
            facts: What is known after this batch.
            gone: Keys whose rows are deleted; none of them is in the files.
        """
        if not files and gone is None:
            self.append([], facts)
            return
        same = " AND ".join(f'(new."{k}" IS NOT DISTINCT FROM old."{k}")' for k in key)

        def merge(properties: CommitProperties) -> None:
            rows, present = self._changes(files, gone)
            values = {f'"{name}"': f'new."{name}"' for name in present}
            merger = self._table.merge(
                rows, same, source_alias="new", target_alias="old", commit_properties=properties
            )
            if gone is not None:
                merger = merger.when_matched_delete(f'new."{_GONE}"')
            if files:
                only = f'NOT new."{_GONE}"' if gone is not None else None
                merger = merger.when_matched_update(values, only)
                merger = merger.when_not_matched_insert(values, only)
            merger.execute()

        self._commit_batch(merge, facts)

    def _changes(
        self, files: Sequence[DataFile], gone: pa.Table | None
    ) -> tuple[pa.RecordBatchReader | pa.Table, list[str]]:
        # Slow to import, and reading facts needs none of it.
        import pyarrow as pa
        import pyarrow.dataset as ds

        parts, present = [], list[str]()
        if files:
            rows = ds.dataset([str(file.path) for file in files], format="parquet")
            columns = [field.name for field in self._table.schema().fields]
            present = [name for name in columns if name in rows.schema.names]
            if gone is None:
                return rows.scanner(columns=present).to_reader(), present
            kept = rows.to_table(columns=present)
            # Beside a key that goes there are no values.
            kept = kept.cast(
                pa.schema([field.with_nullable(nullable=True) for field in kept.schema])
            )
            parts.append(kept.append_column(_GONE, pa.array([False] * kept.num_rows)))
        if gone is not None:
            parts.append(gone.append_column(_GONE, pa.array([True] * gone.num_rows)))
        return pa.concat_tables(parts, promote_options="default"), present

    def _write(self, actions: list[Any], mode: str, properties: CommitProperties) -> None:
        self._table.create_write_transaction(
            actions,
            mode,
            self._table.schema(),
            partition_by=list(self.partition_by),
            commit_properties=properties,
        )

    def _move(self, files: Iterable[DataFile], facts: Facts, number_from: int = 0) -> list[Any]:
        moved = [
            file.move_into(self.path, f"batch-{facts.batch:08d}-{self._epoch}-{number:04d}.parquet")
            for number, file in enumerate(files, number_from)
        ]
        sync_folder(self.path)
        reach("files_moved", self._home, self.name, facts.batch)
        return moved

    def _commit_batch(self, act: Callable[[CommitProperties], Any], facts: Facts) -> None:
        self.facts = replace(facts, epoch=self._epoch)
        batch = Transaction(f"{QUERY}{facts.query_id}", facts.batch)
        self._commit(act, self._transaction(batch))
        sync_folder(self.path / "_delta_log")

    def _transaction(self, *more: Transaction) -> CommitProperties:
        return CommitProperties(
            custom_metadata={FACTS: json.dumps(asdict(self.facts), sort_keys=True)},
            max_commit_retries=1,
            app_transactions=[Transaction(EPOCH, self._epoch), *more],
        )

    def _commit(self, act: Callable[[CommitProperties], Any], properties: CommitProperties) -> None:
        # Looking at the epoch and committing on top of exactly that version is one atomic step:
        # a commit of anyone else in between is refused, and then the epoch is looked at again.
        for left in reversed(range(_TRIES)):
            self._table.update_incremental()
            fenced = self._fenced(properties)
            try:
                act(fenced)
            except CommitFailedError:
                if left == 0:
                    raise
                continue
            self._table.update_incremental()
            if self._has(fenced):
                write_checksum(self.path / "_delta_log", self.version)
                return
            # A merge that meets no row commits nothing, and the batch would be taken for missing.
            act = partial(self._write, [], "append")
        raise AssertionError

    def _has(self, properties: CommitProperties) -> bool:
        wanted = properties.app_transactions or []
        there = ((self._table.transaction_version(t.app_id), t.version) for t in wanted)
        return all(version is not None and version >= least for version, least in there)

    def _fenced(self, properties: CommitProperties) -> CommitProperties:
        """Look at who was here last; give what the commit is to carry."""
        self._refuse_if_overtaken()
        return properties

    def _refuse_if_overtaken(self) -> None:
        epoch = self._table.transaction_version(EPOCH) or 0
        if epoch > self._epoch:
            raise fault("OVERTAKEN", theirs=epoch, mine=self._epoch, table=self.name)


def last_facts(table: DeltaTable) -> Facts:
    """Read what the last batch told of a table as it was opened; commits of others are skipped."""
    told = last_told(table, FACTS)
    return Facts(**json.loads(told)) if told else Facts()


def last_told(table: DeltaTable, name: str) -> str | None:
    """Read what the last commit that told something under a name told; None if none did."""
    seen, wanted = -1, 1
    while seen < table.version() + 1:
        history = table.history(wanted)
        for commit in history[max(seen, 0) :]:
            if name in commit:
                return str(commit[name])
        if len(history) <= seen:
            break
        seen, wanted = len(history), wanted + _HISTORY_STEP
    return None

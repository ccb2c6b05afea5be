"""Delta tables written exactly once: every commit is fenced by epoch and batch.

Spark writes the files; delta-rs commits them. A commit carries two transaction ids, the epoch of
the driver and the batch of the query, and is refused if any other driver has committed since this
one looked. What a batch did is recorded in the commit itself (its facts), so the ledger cannot
disagree with the data. delta-rs forces nothing to disk: that is done here.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    Transaction,
)
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import RemoveAction

from millstream.crash import reach
from millstream.lake.checksum import write_checksum
from millstream.lake.commit import write_commit
from millstream.lake.durable import sync_file, sync_folder
from millstream.lake.fence import (
    Claim,
    Decision,
    Fence,
    PendingBatch,
    on_batch,
    on_take,
    refuse_overtaken,
)
from millstream.lake.log import (
    EPOCH,
    FACTS,
    FEATURE,
    KEY,
    QUERY,
    Facts,
    checkpoint_path,
    commit_path,
    facts_of,
    files_written,
)
from millstream.lake.stored import stored_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from millstream.lake.deletion_vector import Positions
    from millstream.lake.files import DataFile
    from millstream.lake.stored import StoredFile
    from millstream.lake.vectors import Vectors

    Look = Callable[[], Mapping[str, str] | None]
    """Looks at a table as it is now: returns what a commit on top of it records besides its facts,
    or None if the table has the batch; raises if nothing may be committed."""

_GONE = "_gone"
_MOVED = "batch-"
"""How the names of files begin that are on disk before they are moved into a table."""
_TRIES = 5
_HISTORY_STEP = 50
_INTERVAL, _USUAL_INTERVAL = "delta.checkpointInterval", 100
_KEEP_LOG = PostCommitHookProperties(cleanup_expired_logs=False)
"""delta-rs would remove old commits whether or not a reader still needs them."""

__all__ = ["EPOCH", "FACTS", "Facts", "FencedTable", "facts_of", "last_commit_value", "last_facts"]


class FencedTable:
    """A Delta table open for writing by one driver of one epoch."""

    def __init__(self, path: Path, *, name: str, epoch: int, owner: str = "") -> None:
        self.path, self.name, self._claim = path, name, Claim("", epoch, owner)
        self._table = DeltaTable(str(path))
        self._facts: Facts | None = None

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
            configuration={_INTERVAL: str(_USUAL_INTERVAL), **(properties or {})},
        )
        sync_file(commit_path(path, 0))
        for folder in (path / "_delta_log", path, path.parent):
            sync_folder(folder)
        write_checksum(path / "_delta_log", 0)

    @property
    def _home(self) -> Path:
        return self.path.parent.parent

    @property
    def facts(self) -> Facts:
        """The facts of the last commit; read again if a commit may have failed."""
        if self._facts is None:
            self._table.update_incremental()
            self._facts = last_facts(self._table)
        return self._facts

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

    @property
    def epoch(self) -> int:
        """The epoch of the driver that writes it."""
        return self._claim.epoch

    def snapshot(self) -> DeltaTable:
        """Return the table as it is now, to be read."""
        self._table.update_incremental()
        return self._table

    def refresh(self) -> None:
        """See what others have committed."""
        self._table.update_incremental()

    def last_commit_value(self, name: str) -> str | None:
        """Return the last value that a commit recorded under a name."""
        return last_commit_value(self._table, name)

    def take(self, look: Look | None = None) -> None:
        """Write this driver's epoch into the table: no earlier driver can commit from now on.

        Args:
            look: What decides, if not the epoch of the home.

        Raises:
            OvertakenError: A later driver was here already.
        """
        self._commit(partial(self._write, [], "append"), None, look or self._look)
        reach("table_taken", self._home, self.name)

    def publish(self, facts: Facts) -> None:
        """Commit what is known of the table now, without rows; it is no batch."""
        self._commit(partial(self._write, [], "append"), facts, self._look)

    def add_columns(self, fields: str, look: Look | None = None) -> None:
        """Add columns, given as a Spark schema in JSON; earlier rows have null there."""
        columns = Schema.from_json(fields).fields
        self._commit(
            lambda properties: self._table.alter.add_columns(
                columns, commit_properties=properties, post_commithook_properties=_KEEP_LOG
            ),
            None,
            look or self._look,
        )

    def append(
        self,
        files: Iterable[DataFile],
        facts: Facts,
        *,
        number_from: int = 0,
        look: Look | None = None,
    ) -> None:
        """Add files and record the batch, in one commit; nothing if the table has it.

        Args:
            files: Taken from where they are.
            facts: What is known after this batch.
            number_from: What the files are numbered from, if a batch has several commits.
            look: What decides, if not the epoch and the batches of the home.
        """
        if look or self._must_write(facts):
            actions = self._move(files, facts, number_from)
            self._commit_batch(partial(self._write, actions, "append"), facts, look)

    def replace(self, files: Iterable[DataFile], facts: Facts, *, look: Look | None = None) -> None:
        """Replace all files, as `append` adds them."""
        if look or self._must_write(facts):
            actions = self._move(files, facts)
            self._commit_batch(partial(self._write, actions, "overwrite"), facts, look)

    def check_epoch(self) -> None:
        """Check that no later driver has taken the table.

        Raises:
            OvertakenError: One has.
        """
        self._table.update_incremental()
        self._look()

    @cached_property
    def _vectors(self) -> Vectors:
        # Slow to import, and few tables need it.
        from millstream.lake.vectors import Vectors

        return Vectors(self.path)

    @property
    def has_vectors(self) -> bool:
        """Whether rows of the table may be deleted where they are."""
        return FEATURE in (self._table.protocol().reader_features or ())

    @property
    def prepared_key(self) -> tuple[str, ...] | None:
        """The key for which rows are deleted where they are; None if batches are merged."""
        key = self._table.metadata().configuration.get(KEY) if self.has_vectors else None
        return None if key is None else tuple(json.loads(key))

    def stored(self) -> tuple[StoredFile, ...]:
        """List the files as they are now, with how many rows of each are deleted."""
        files = stored_files(self.snapshot())
        if not self.has_vectors:
            return files
        deleted = self._vectors.files(self.version).counts()
        return tuple(replace(file, deleted=deleted.get(file.path, 0)) for file in files)

    def deleted(self, files: Sequence[StoredFile]) -> Mapping[str, Positions]:
        """Return the positions of deleted rows, by the paths of files."""
        if not self.has_vectors:
            return {}
        live = self._vectors.files(self.version)
        return {file.path: live.deleted(file.path) for file in files if file.path in live.adds}

    def index(self, name: str, file: DataFile) -> None:
        """Make the index of a file that is about to be in the table by a name."""
        if self.prepared_key is not None:
            self._vectors.index(self.version).make(file.path, name)

    def can_delete_in_place(self, key: Sequence[str]) -> bool:
        """Return whether rows can be deleted where they are, and are not yet, for a key."""
        if self.prepared_key == tuple(key):
            return False
        return self._vectors.can_prepare(self.version, key)

    def prepare(self, key: Sequence[str]) -> None:
        """Make what `delete_in_place` needs, so that no batch waits for it."""
        self._vectors.prepare(self.version, key)

    def delete_in_place(self, key: Sequence[str]) -> None:
        """Have batches delete rows of a key where they are, from now on: readers must know how."""

        def act(properties: CommitProperties) -> None:
            actions = self._vectors.enabled(self.version, key)
            write_commit(self.path, self.version + 1, "SET TBLPROPERTIES", actions, properties)

        self._commit(act, None, self._look)
        reach("vectors_enabled", self._home, self.name)

    def rewrite(
        self,
        gone: Sequence[StoredFile],
        files: Mapping[str, DataFile],
        left_out: Mapping[str, Positions] | None = None,
    ) -> bool:
        """Put files in the place of others, in one commit that brings no row to any reader.

        Args:
            gone: What is replaced.
            files: By their new names; taken from where they are.
            left_out: Which deleted rows of what is replaced are not in them. What was deleted
                after that is deleted in the new file.

        Returns:
            Whether it is done; False if some of the files were replaced already.

        Raises:
            OvertakenError: A later driver was here.
        """
        added: list[Any] = [
            file.move_into(self.path, name, data_change=False) for name, file in files.items()
        ]
        sync_folder(self.path)
        reach("files_rewritten", self._home, self.name)
        now_ms = time.time_ns() // 1_000_000
        removed = [
            RemoveAction(file.path, False, now_ms, file.size, dict(file.partition))  # noqa: FBT003
            for file in gone
        ]
        paths, is_done = {file.path for file in gone}, False

        def look() -> Mapping[str, str] | None:
            return self._look() if paths <= {*self._paths()} else None

        def act(properties: CommitProperties) -> None:
            nonlocal is_done
            if self.has_vectors:
                seen = {file.path: (left_out or {}).get(file.path) for file in gone}
                actions = self._vectors.replaced(self.version, seen, added)
                write_commit(self.path, self.version + 1, "OPTIMIZE", actions, properties)
            else:
                self._write([*added, *removed], "append", properties)
            is_done = True

        self._commit(act, None, look)
        if is_done:
            reach("rewrite_commit", self._home, self.name)
        return is_done

    def checkpoint(self) -> None:
        """Write the state of the newest version as one file, from which readers may begin."""
        self._table.update_incremental()
        self._table.create_checkpoint()
        self._sync_checkpoint(self.version)

    def _paths(self) -> list[str]:
        actions: Any = self._table.get_add_actions()
        return [str(path) for path in actions.column("path").to_pylist()]

    def upsert(
        self,
        files: Sequence[DataFile],
        key: Sequence[str],
        facts: Facts,
        *,
        gone: pa.Table | None = None,
        look: Look | None = None,
    ) -> None:
        """Update rows by key, insert those that are new and record the batch, in one commit.

        Args:
            files: The rows.
            key: The columns that identify a row.
            facts: What is known after this batch.
            gone: Keys whose rows are deleted; none of them is in the files.
            look: What decides, if not the epoch and the batches of the home.
        """
        if not files and gone is None:
            self.append([], facts, look=look)
            return
        if not look and not self._must_write(facts):
            return
        # Maintenance may have prepared the table since the last batch.
        self._table.update_incremental()
        if tuple(key) == self.prepared_key and self._have_all_columns(files):
            self._upsert_in_place(files, facts, gone, look)
            return
        names = map(_in_quotes, key)
        same = " AND ".join(f"(new.{name} IS NOT DISTINCT FROM old.{name})" for name in names)

        def merge(properties: CommitProperties) -> None:
            rows, present = self._changes(files, gone)
            values = {name: f"new.{name}" for name in map(_in_quotes, present)}
            merger = self._table.merge(
                rows,
                same,
                source_alias="new",
                target_alias="old",
                commit_properties=properties,
                post_commithook_properties=_KEEP_LOG,
            )
            if gone is not None:
                merger = merger.when_matched_delete(f'new."{_GONE}"')
            if files:
                only = f'NOT new."{_GONE}"' if gone is not None else None
                merger = merger.when_matched_update(values, only)
                merger = merger.when_not_matched_insert(values, only)
            merger.execute()

        self._commit_batch(merge, facts, look)

    def _upsert_in_place(
        self,
        files: Sequence[DataFile],
        facts: Facts,
        gone: pa.Table | None,
        look: Look | None,
    ) -> None:
        keys = self._vectors.keys(self.version, files, gone)
        added = self._move(files, facts)

        def act(properties: CommitProperties) -> None:
            actions = self._vectors.upserted(self.version, added, keys)
            reach("deletions_written", self._home, self.name, facts.batch)
            write_commit(self.path, self.version + 1, "MERGE", actions, properties)

        self._commit_batch(act, facts, look)

    def _have_all_columns(self, files: Sequence[DataFile]) -> bool:
        """Whether rows replace those of their keys as a whole; a merge keeps other columns."""
        names = {field.name for field in self._table.schema().fields}
        return all(names <= {*file.metadata.schema.to_arrow_schema().names} for file in files)

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
            # A deleted key has no values beside it.
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
            post_commithook_properties=_KEEP_LOG,
        )

    def _move(self, files: Iterable[DataFile], facts: Facts, number_from: int = 0) -> list[Any]:
        # A driver that was overtaken must not move a file onto one of the driver after it.
        driver = f"{self._claim.epoch}{self._claim.owner and '-'}{self._claim.owner}"
        moved = [
            file.move_into(self.path, f"{_MOVED}{facts.batch:08d}-{driver}-{number:04d}.parquet")
            for number, file in enumerate(files, number_from)
        ]
        sync_folder(self.path)
        reach("files_moved", self._home, self.name, facts.batch)
        return moved

    def _commit_batch(
        self, act: Callable[[CommitProperties], Any], facts: Facts, look: Look | None
    ) -> None:
        batch = Transaction(f"{QUERY}{facts.query_id}", facts.batch)
        self._commit(act, facts, look or partial(self._look, facts), batch)

    def _commit(
        self,
        act: Callable[[CommitProperties], Any],
        facts: Facts | None,
        look: Look,
        *batch: Transaction,
    ) -> None:
        """Commit what `act` writes; without facts of its own, it repeats those that are there."""
        wanted = [Transaction(EPOCH, self._claim.epoch), *batch]
        # Until the commit returns, it is unknown which facts the table has.
        self._facts = None
        # Looking at the table and committing on top of exactly that version is one atomic step:
        # a commit by another driver in between is refused, and the table is looked at again.
        for left in reversed(range(_TRIES)):
            self._table.update_incremental()
            before, more = self.version, look()
            if more is None:
                return
            now = replace(facts or last_facts(self._table), epoch=self._claim.epoch)
            recorded = {FACTS: json.dumps(asdict(now), sort_keys=True), **more}
            properties = CommitProperties(recorded, max_commit_retries=1, app_transactions=wanted)
            try:
                act(properties)
            except CommitFailedError:
                if left == 0:
                    raise
                continue
            self._table.update_incremental()
            if self._has(wanted[-1]):
                self._checkpoint_if_due()
                self._make_durable(range(before + 1, self.version + 1))
                self._facts = now
                write_checksum(self.path / "_delta_log", self.version)
                return
            # A merge that matches no row commits nothing, and the batch would seem to be missing.
            act = partial(self._write, [], "append")
        raise AssertionError

    def _checkpoint_if_due(self) -> None:
        """Write the checkpoint that delta-rs writes only after its own commits."""
        interval = int(self._table.metadata().configuration.get(_INTERVAL, _USUAL_INTERVAL))
        is_due = self.has_vectors and self.version % interval == 0
        if is_due and not checkpoint_path(self.path, self.version).exists():
            self._table.create_checkpoint()

    def _has(self, wanted: Transaction) -> bool:
        version = self._table.transaction_version(wanted.app_id)
        return version is not None and version >= wanted.version

    def _make_durable(self, versions: range) -> None:
        """Force commits to disk, after the files that delta-rs itself wrote for them."""
        for version in versions:
            files = files_written(self.path, version)
            written = [file for file in files if not file.name.startswith(_MOVED)]
            for file in written:
                sync_file(file)
            for folder in {file.parent for file in written}:
                sync_folder(folder)
            self._sync_checkpoint(version)
            sync_file(commit_path(self.path, version))
        sync_folder(self.path / "_delta_log")

    def _sync_checkpoint(self, version: int) -> None:
        made = checkpoint_path(self.path, version)
        if made.exists():
            sync_file(made)
            sync_file(made.parent / "_last_checkpoint")
            sync_folder(made.parent)

    def _must_write(self, facts: Facts) -> bool:
        """Return whether a batch is still to be written, before its files are moved in.

        Raises:
            OvertakenError: It is not, and a later driver was here.
        """
        is_last = self.facts.query_id == facts.query_id
        if self._is_new(facts, self.facts.batch if is_last else self._last_batch(facts)):
            return True
        self._table.update_incremental()
        self._look()
        return False

    def _look(self, facts: Facts | None = None) -> Mapping[str, str] | None:
        """Check the epoch, and the batch if there is one, against the table."""
        held = Fence("", self._table.transaction_version(EPOCH) or 0, "")
        refuse_overtaken(on_take(held, self._claim), held, self._claim, self.name)
        return {} if facts is None or self._is_new(facts, self._last_batch(facts)) else None

    def _last_batch(self, facts: Facts) -> int:
        batch = self._table.transaction_version(f"{QUERY}{facts.query_id}")
        return -1 if batch is None else batch

    def _is_new(self, facts: Facts, last: int) -> bool:
        pending = PendingBatch(facts.query_id, facts.batch, facts.digest, is_sparse=True)
        held = self._claim.first_fence().with_batch(replace(pending, batch=last), "")
        return on_batch(held, self._claim, pending) is Decision.APPLY


def _in_quotes(name: str) -> str:
    """Write the name of a column as delta-rs reads it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def last_facts(table: DeltaTable) -> Facts:
    """Read the facts of the last batch of an open table; commits of others are skipped."""
    facts = last_commit_value(table, FACTS)
    return Facts(**json.loads(facts)) if facts else Facts()


def last_commit_value(table: DeltaTable, name: str) -> str | None:
    """Return the last value that a commit recorded under a name; None if none did."""
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

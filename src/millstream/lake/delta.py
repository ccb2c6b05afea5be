"""Delta tables written exactly once: every commit is fenced by epoch and batch.

Spark writes the files; delta-rs commits them. What a batch did is recorded in the commit itself
(its facts), so the ledger cannot disagree with the data.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.transaction import RemoveAction

from millstream.crash import reach
from millstream.lake.checksum import write_checksum
from millstream.lake.commit import write_commit
from millstream.lake.durable import sync_file, sync_folder
from millstream.lake.fence import Claim
from millstream.lake.fenced_log import (
    INTERVAL,
    KEEP_LOG,
    MOVED,
    USUAL_INTERVAL,
    FencedLog,
    last_commit_value,
)
from millstream.lake.log import KEY, Facts, commit_path
from millstream.lake.merge import have_all_columns, merge
from millstream.lake.stored import stored_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from millstream.lake.deletion_vector import Positions
    from millstream.lake.fenced_log import Look
    from millstream.lake.files import DataFile
    from millstream.lake.stored import StoredFile
    from millstream.lake.vectors import Vectors


class FencedTable:
    """A Delta table open for writing by one driver of one epoch."""

    def __init__(self, path: Path, *, name: str, epoch: int, owner: str = "") -> None:
        self.path, self.name = path, name
        self._log = FencedLog(path, name=name, claim=Claim("", epoch, owner))

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
            configuration={INTERVAL: str(USUAL_INTERVAL), **(properties or {})},
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
        return self._log.facts

    @property
    def schema(self) -> str:
        """The table's schema, as Spark's JSON."""
        return str(self._log.table.schema().to_json())

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The table's partition columns."""
        return tuple(self._log.table.metadata().partition_columns)

    @property
    def version(self) -> int:
        """The version last seen or written."""
        return self._log.version

    @property
    def epoch(self) -> int:
        """The epoch of the driver that writes it."""
        return self._log.claim.epoch

    def snapshot(self) -> DeltaTable:
        """Return the table as it is now, to be read."""
        self._log.table.update_incremental()
        return self._log.table

    def refresh(self) -> None:
        """See what others have committed."""
        self._log.table.update_incremental()

    def last_commit_value(self, name: str) -> str | None:
        """Return the last value that a commit recorded under a name."""
        return last_commit_value(self._log.table, name)

    def take(self, look: Look | None = None) -> None:
        """Write this driver's epoch into the table: no earlier driver can commit from now on.

        Args:
            look: What decides, if not the epoch of the home.

        Raises:
            OvertakenError: A later driver was here already.
        """
        self._log.commit(partial(self._log.write, [], "append"), None, look or self._log.look)
        reach("table_taken", self._home, self.name)

    def publish(self, facts: Facts) -> None:
        """Commit what is known of the table now, without rows; it is no batch."""
        self._log.commit(partial(self._log.write, [], "append"), facts, self._log.look)

    def add_columns(self, fields: str, look: Look | None = None) -> None:
        """Add columns, given as a Spark schema in JSON; earlier rows have null there."""
        columns = Schema.from_json(fields).fields
        self._log.commit(
            lambda properties: self._log.table.alter.add_columns(
                columns, commit_properties=properties, post_commithook_properties=KEEP_LOG
            ),
            None,
            look or self._log.look,
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
        if look or self._log.must_write(facts):
            actions = self._move(files, facts, number_from)
            self._log.commit_batch(partial(self._log.write, actions, "append"), facts, look)

    def replace(self, files: Iterable[DataFile], facts: Facts, *, look: Look | None = None) -> None:
        """Replace all files, as `append` adds them."""
        if look or self._log.must_write(facts):
            actions = self._move(files, facts)
            self._log.commit_batch(partial(self._log.write, actions, "overwrite"), facts, look)

    def check_epoch(self) -> None:
        """Check that no later driver has taken the table.

        Raises:
            OvertakenError: One has.
        """
        self._log.table.update_incremental()
        self._log.look()

    @cached_property
    def _vectors(self) -> Vectors:
        # Slow to import, and few tables need it.
        from millstream.lake.vectors import Vectors

        return Vectors(self.path)

    @property
    def has_vectors(self) -> bool:
        """Whether rows of the table may be deleted where they are."""
        return self._log.has_vectors

    @property
    def prepared_key(self) -> tuple[str, ...] | None:
        """The key for which rows are deleted where they are; None if batches are merged."""
        key = self._log.table.metadata().configuration.get(KEY) if self.has_vectors else None
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

        self._log.commit(act, None, self._log.look)
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
            return self._log.look() if paths <= {*self._paths()} else None

        def act(properties: CommitProperties) -> None:
            nonlocal is_done
            if self.has_vectors:
                seen = {file.path: (left_out or {}).get(file.path) for file in gone}
                actions = self._vectors.replaced(self.version, seen, added)
                write_commit(self.path, self.version + 1, "OPTIMIZE", actions, properties)
            else:
                self._log.write([*added, *removed], "append", properties)
            is_done = True

        self._log.commit(act, None, look)
        if is_done:
            reach("rewrite_commit", self._home, self.name)
        return is_done

    def checkpoint(self) -> None:
        """Write the state of the newest version as one file, from which readers may begin."""
        self._log.checkpoint()

    def _paths(self) -> list[str]:
        actions: Any = self._log.table.get_add_actions()
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
        if not look and not self._log.must_write(facts):
            return
        # Maintenance may have prepared the table since the last batch.
        self._log.table.update_incremental()
        if tuple(key) == self.prepared_key and have_all_columns(self._log.table, files):
            self._upsert_in_place(files, facts, gone, look)
            return

        def act(properties: CommitProperties) -> None:
            merge(self._log.table, files, key, gone, properties)

        self._log.commit_batch(act, facts, look)

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

        self._log.commit_batch(act, facts, look)

    def _move(self, files: Iterable[DataFile], facts: Facts, number_from: int = 0) -> list[Any]:
        # A driver that was overtaken must not move a file onto one of the driver after it.
        claim = self._log.claim
        driver = f"{claim.epoch}{claim.owner and '-'}{claim.owner}"
        moved = [
            file.move_into(self.path, f"{MOVED}{facts.batch:08d}-{driver}-{number:04d}.parquet")
            for number, file in enumerate(files, number_from)
        ]
        sync_folder(self.path)
        reach("files_moved", self._home, self.name, facts.batch)
        return moved

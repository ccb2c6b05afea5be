"""The log of one Delta table, written by one driver: every commit is fenced by epoch and batch.

A commit carries two transaction ids, the epoch of the driver and the batch of the query, and is
refused if any other driver has committed since this one looked. delta-rs forces nothing to disk:
that is done here.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError

from millstream.lake.checksum import write_checksum
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
    QUERY,
    Facts,
    checkpoint_path,
    commit_path,
    files_written,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Look = Callable[[], Mapping[str, str] | None]
    """Looks at a table as it is now: returns what a commit on top of it records besides its facts,
    or None if the table has the batch; raises if nothing may be committed."""

MOVED = "batch-"
"""How the names of files begin that are on disk before they are moved into a table."""
INTERVAL, USUAL_INTERVAL = "delta.checkpointInterval", 100
KEEP_LOG = PostCommitHookProperties(cleanup_expired_logs=False)
"""delta-rs would remove old commits whether or not a reader still needs them."""
_TRIES = 5
_HISTORY_STEP = 50


class FencedLog:
    """The log of a table, open for commits of one driver of one epoch."""

    def __init__(self, path: Path, *, name: str, claim: Claim) -> None:
        self.path, self.name, self.claim = path, name, claim
        self.table = DeltaTable(str(path))
        self._facts: Facts | None = None

    @property
    def version(self) -> int:
        """The version last seen or written."""
        return int(self.table.version())

    @property
    def has_vectors(self) -> bool:
        """Whether rows of the table may be deleted where they are."""
        return FEATURE in (self.table.protocol().reader_features or ())

    @property
    def facts(self) -> Facts:
        """The facts of the last commit; read again if a commit may have failed."""
        if self._facts is None:
            self.table.update_incremental()
            self._facts = last_facts(self.table)
        return self._facts

    def write(self, actions: list[Any], mode: str, properties: CommitProperties) -> None:
        """Add files, or replace all by them."""
        self.table.create_write_transaction(
            actions,
            mode,
            self.table.schema(),
            partition_by=self.table.metadata().partition_columns,
            commit_properties=properties,
            post_commithook_properties=KEEP_LOG,
        )

    def commit_batch(
        self, act: Callable[[CommitProperties], Any], facts: Facts, look: Look | None
    ) -> None:
        """Commit what `act` writes as a batch, unless the table has it."""
        batch = Transaction(f"{QUERY}{facts.query_id}", facts.batch)
        self.commit(act, facts, look or partial(self.look, facts), batch)

    def commit(
        self,
        act: Callable[[CommitProperties], Any],
        facts: Facts | None,
        look: Look,
        *batch: Transaction,
    ) -> None:
        """Commit what `act` writes; without facts of its own, it repeats those that are there."""
        wanted = [Transaction(EPOCH, self.claim.epoch), *batch]
        # Until the commit returns, it is unknown which facts the table has.
        self._facts = None
        # Looking at the table and committing on top of exactly that version is one atomic step:
        # a commit by another driver in between is refused, and the table is looked at again.
        for left in reversed(range(_TRIES)):
            self.table.update_incremental()
            before, more = self.version, look()
            if more is None:
                return
            now = replace(facts or last_facts(self.table), epoch=self.claim.epoch)
            recorded = {FACTS: json.dumps(asdict(now), sort_keys=True), **more}
            properties = CommitProperties(recorded, max_commit_retries=1, app_transactions=wanted)
            try:
                act(properties)
            except CommitFailedError:
                if left == 0:
                    raise
                continue
            self.table.update_incremental()
            if self._has(wanted[-1]):
                self._checkpoint_if_due()
                self._make_durable(range(before + 1, self.version + 1))
                self._facts = now
                write_checksum(self.path / "_delta_log", self.version)
                return
            # A merge that matches no row commits nothing, and the batch would seem to be missing.
            act = partial(self.write, [], "append")
        raise AssertionError

    def _checkpoint_if_due(self) -> None:
        """Write the checkpoint that delta-rs writes only after its own commits."""
        interval = int(self.table.metadata().configuration.get(INTERVAL, USUAL_INTERVAL))
        is_due = self.has_vectors and self.version % interval == 0
        if is_due and not checkpoint_path(self.path, self.version).exists():
            self.table.create_checkpoint()

    def _has(self, wanted: Transaction) -> bool:
        version = self.table.transaction_version(wanted.app_id)
        return version is not None and version >= wanted.version

    def _make_durable(self, versions: range) -> None:
        """Force commits to disk, after the files that delta-rs itself wrote for them."""
        for version in versions:
            files = files_written(self.path, version)
            written = [file for file in files if not file.name.startswith(MOVED)]
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

    def checkpoint(self) -> None:
        """Write the state of the newest version as one file, from which readers may begin."""
        self.table.update_incremental()
        self.table.create_checkpoint()
        self._sync_checkpoint(self.version)

    def must_write(self, facts: Facts) -> bool:
        """Return whether a batch is still to be written, before its files are moved in.

        Raises:
            OvertakenError: It is not, and a later driver was here.
        """
        is_last = self.facts.query_id == facts.query_id
        if self._is_new(facts, self.facts.batch if is_last else self._last_batch(facts)):
            return True
        self.table.update_incremental()
        self.look()
        return False

    def look(self, facts: Facts | None = None) -> Mapping[str, str] | None:
        """Check the epoch, and the batch if there is one, against the table."""
        held = Fence("", self.table.transaction_version(EPOCH) or 0, "")
        refuse_overtaken(on_take(held, self.claim), held, self.claim, self.name)
        return {} if facts is None or self._is_new(facts, self._last_batch(facts)) else None

    def _last_batch(self, facts: Facts) -> int:
        batch = self.table.transaction_version(f"{QUERY}{facts.query_id}")
        return -1 if batch is None else batch

    def _is_new(self, facts: Facts, last: int) -> bool:
        pending = PendingBatch(facts.query_id, facts.batch, facts.digest, is_sparse=True)
        held = self.claim.first_fence().with_batch(replace(pending, batch=last), "")
        return on_batch(held, self.claim, pending) is Decision.APPLY


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

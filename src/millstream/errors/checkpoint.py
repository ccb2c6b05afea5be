"""Errors of checkpoints: what is damaged, and what no repair can bring back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import ClusterError, CommandError, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


class CheckpointDamagedError(ClusterError):
    """A file of a checkpoint is missing or not as Spark wrote it."""

    code = "CHECKPOINT_DAMAGED"

    def __init__(self, query: str, *, file: str, why: str, home: str) -> None:
        self.query, self.file = query, file
        super().__init__(
            f"the checkpoint of {query!r} is damaged: {file!r}: {why}",
            fix=f"`millstream checkpoint repair APP --home {home}`, which goes back to the last "
            "batch that is whole; the tables are not affected",
        )


class CheckpointLostError(ClusterError):
    """A checkpoint cannot be mended without losing or repeating rows."""

    code = "CHECKPOINT_LOST"

    def __init__(self, query: str, *, file: str, lost: str) -> None:
        self.query, self.file = query, file
        super().__init__(
            f"the checkpoint of {query!r} cannot be mended: {file!r} is lost, and with it {lost}",
            fix=f"restore {file!r} from a backup; to go on without would lose or repeat rows, "
            "so nothing was changed",
        )


class RepairNotAgreedError(CommandError):
    """A repair moves tables away, and nobody has agreed to it."""

    code = "REPAIR_NOT_AGREED"

    def __init__(self, tables: Sequence[str]) -> None:
        super().__init__(
            f"the repair would move tables aside, to be computed again: {listed(tables)}",
            fix="repeat the command with --yes; nothing was changed",
        )

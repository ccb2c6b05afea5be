"""The offset and commit logs of one streaming query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from millstream.checkpoint.entry import Offsets, parse_operator, parse_query_id
from millstream.checkpoint.state import newest_described
from millstream.errors import fault
from millstream.lake.durable import sync_file, sync_folder
from millstream.lake.fence import Logged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Entry = TypeVar("Entry")

WAITING = frozenset({"transformWithStateInPandasExec", "symmetricHashJoin"})
"""Operators that may keep a row beyond the watermark: keyed state in Python, and joins by a time
bound. Ours record for how long; a join written in Spark's own words does not."""


@dataclass(frozen=True, slots=True)
class CheckpointLog:
    """One query's checkpoint folder."""

    path: Path

    @property
    def query_id(self) -> str | None:
        """The identity Spark gave the query at its first start; None before that."""
        file = self.path / "metadata"
        return self._read(file, parse_query_id) if file.exists() else None

    @property
    def planned(self) -> int:
        """The last batch whose offsets are logged; -1 if none."""
        return _latest(self.path / "offsets")

    @property
    def committed(self) -> int:
        """The last batch Spark has marked as done; -1 if none."""
        return _latest(self.path / "commits")

    @property
    def logged(self) -> Logged:
        """What it knows of its batches, to be compared with a fence."""
        return Logged(self.query_id or "", self.committed, self.planned)

    @property
    def watermark_ms(self) -> int:
        """The watermark of the last planned batch, in milliseconds since 1970; 0 before any."""
        if self.planned < 0:
            return 0
        return self.offsets(self.planned).watermark_ms

    def planned_at_ms(self, batch: int) -> int:
        """When a batch was planned, in milliseconds since 1970; the same for every retry."""
        return self.offsets(batch).planned_at_ms

    def offsets(self, batch: int) -> Offsets:
        """Where a planned batch ends; the same for every retry."""
        return self._read(self.path / "offsets" / str(batch), Offsets.parse)

    def brought_nothing(self, batch: int) -> bool:
        """Whether a batch has the offsets and the watermark of the one before."""
        if batch < 1:
            return False
        here, before = self.offsets(batch), self.offsets(batch - 1)
        return (here.ends, here.watermark_ms) == (before.ends, before.watermark_ms)

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the operators that keep state, as Spark calls them."""
        found: list[Path] = []
        for operator in (self.path / "state").glob("[0-9]*"):
            found += newest_described(operator) or operator.glob("_metadata/metadata")
        return tuple(self._read(file, parse_operator) for file in found)

    def make_durable(self, batch: int) -> None:
        """Force the offsets of a batch to disk, before its output is.

        Spark never does: an output that survives a power cut while its offsets do not would be
        computed again from other offsets, under the same batch number.
        """
        sync_file(self.path / "offsets" / str(batch))
        sync_folder(self.path / "offsets")

    def _read(self, file: Path, parse: Callable[[bytes], Entry]) -> Entry:
        try:
            return parse(file.read_bytes())
        except (OSError, ValueError, KeyError, TypeError) as error:
            home = self.path.parent.parent
            raise fault(
                "CHECKPOINT_DAMAGED",
                query=self.path.name,
                file=str(file),
                why=str(error),
                home=str(home),
            ) from error


def _latest(log: Path) -> int:
    if not log.exists():
        return -1
    return max((int(file.name) for file in log.iterdir() if file.name.isdigit()), default=-1)

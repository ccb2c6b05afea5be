"""The log of an answer that is made from rows that change: which of its answers were delivered."""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from millstream.lake.durable import write_durably
from millstream.lake.fence import Logged
from millstream.lake.staged_batches import StagedBatches

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from millstream.lake.home import Home

_LOG = "log.json"


@dataclass(frozen=True)
class ChangeLog:
    """Which answers were delivered: what a checkpoint is to a stream."""

    path: Path
    batches: StagedBatches

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
        return committed + self.batches.has(self.query_id, committed + 1)

    @property
    def logged(self) -> Logged:
        """What it knows of its answers, to be compared with a fence."""
        return Logged(self.query_id, self.committed, self.planned)

    @staticmethod
    def begin(home: Home, name: str) -> ChangeLog:
        """Open the log of an answer; draw its id, unless there is one."""
        log = ChangeLog(home.changes(name), StagedBatches(home.staging(name)))
        log.path.mkdir(parents=True, exist_ok=True)
        if not (log.path / _LOG).exists():
            log._write({"id": uuid.uuid4().hex, "batch": -1})
        return log

    def commit(self, batch: int) -> None:
        """Record that every store has an answer."""
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

    def _write(self, content: Mapping[str, Any]) -> None:
        write_durably(self.path / _LOG, json.dumps(content))

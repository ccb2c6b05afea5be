"""The home of a program: its journal of batches, its states, and what its inputs received."""

from __future__ import annotations

import json
import tempfile
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.lake.durable import write_durably
from millstream.lake.home import Home
from millstream.lake.lease import Lease

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_APP = "dstream"


class StreamHome:
    """The checkpoint directory of a context, held by one driver; a temporary one if none is set."""

    def __init__(self, directory: str | None) -> None:
        """Take the home.

        Raises:
            HOME_UNUSABLE: The folder cannot be made or written.
            HOME_LOCKED: Another driver holds it.
        """
        self.is_durable = directory is not None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if directory is None:
            # Deleted at the end of the process, too, if nobody closes this home.
            self._temporary = tempfile.TemporaryDirectory(
                prefix="dstream-", ignore_cleanup_errors=True
            )
            directory = self._temporary.name
        self.home = Home.at(directory)
        self.home.prepare(_APP, sources=())
        self.lease = Lease.acquire(self.home)
        self._root = self.home.path / "dstream"
        self._root.mkdir(exist_ok=True)

    @property
    def path(self) -> Path:
        """The folder of the home."""
        return self.home.path

    @property
    def journal(self) -> Path:
        """Where planned batches are."""
        return self._root / "journal"

    def state(self, number: int) -> Path:
        """Where the versions of a state are."""
        return self._root / "states" / str(number)

    def input(self, number: int) -> Path:
        """Where an input keeps what it received."""
        return self._root / "inputs" / str(number)

    def sink(self, number: int) -> Path:
        """Where the store of an output keeps what it cannot keep beside its rows."""
        return self._root / "sinks" / str(number)

    @property
    def checkpoint(self) -> Path:
        """Where Spark keeps the progress of the query that runs the batches."""
        return self.home.checkpoint(_APP)

    @cached_property
    def id(self) -> str:
        """What distinguishes this home from any other: stores record it with their batches."""
        return str(self._facts["id"])

    @cached_property
    def zero_ms(self) -> int | None:
        """The time before the first batch; None until one is planned."""
        found = self._facts.get("zero_ms")
        return None if found is None else int(found)

    def begin(self, zero_ms: int, program: Sequence[str]) -> int:
        """Record what runs here, at the first start; return the time before the first batch.

        Raises:
            DSTREAM_CHANGED: Something else ran here, whose state and positions do not fit.
        """
        facts = self._facts
        if facts.get("program", list(program)) != list(program):
            raise fault(
                "DSTREAM_CHANGED",
                home=str(self.path),
                before=", ".join(facts["program"]),
                now=", ".join(program),
            )
        facts.setdefault("zero_ms", zero_ms)
        facts["program"] = list(program)
        write_durably(self._file, json.dumps(facts))
        return int(facts["zero_ms"])

    def close(self) -> None:
        """Release the home; delete it if it is a temporary one."""
        self.lease.release()
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def _file(self) -> Path:
        return self._root / "program.json"

    @cached_property
    def _facts(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._file.read_text()))
        except FileNotFoundError:
            return {"id": uuid.uuid4().hex}


@dataclass(frozen=True, slots=True)
class Planned:
    """A batch: its time, and for each input what belongs to it."""

    number: int
    ms: int
    parts: tuple[Any, ...]
    """For each input, in JSON, what it calls its own part."""


class Journal:
    """The batches that are planned, until no window reads them, and the last that is done."""

    def __init__(self, home: StreamHome) -> None:
        self._home, self._folder = home, home.journal
        self._folder.mkdir(exist_ok=True)
        files = sorted(self._folder.glob("[0-9]*.json"))
        self.batches = {p.ms: p for p in (_planned(file) for file in files)}
        self._done_file = self._folder / "done"
        self.done = int(self._done_file.read_text()) if self._done_file.exists() else -1

    @property
    def last(self) -> Planned | None:
        """The last batch that was planned."""
        return self._all[-1] if self.batches else None

    @property
    def waiting(self) -> list[Planned]:
        """The batches that are planned and not done."""
        return [planned for planned in self._all if planned.number > self.done]

    def add(self, ms: int, parts: Sequence[Any]) -> Planned:
        """Plan a batch; it is on disk when this returns."""
        number = self.last.number + 1 if self.last else 0
        self._write(self._file(number), json.dumps({"ms": ms, "parts": list(parts)}))
        planned = Planned(number, ms, tuple(parts))
        self.batches[ms] = planned
        return planned

    def finish(self, planned: Planned) -> None:
        """Record that all outputs of a batch have run."""
        self._write(self._done_file, str(planned.number))
        self.done = planned.number

    def before(self, ms: int) -> list[Planned]:
        """Return the batches from before a time that are done, but the last."""
        return [p for p in self._all if p.ms < ms and p.number < self.done]

    def forget(self, old: Sequence[Planned]) -> None:
        """Delete batches."""
        for planned in old:
            self._file(planned.number).unlink(missing_ok=True)
            del self.batches[planned.ms]

    @property
    def _all(self) -> tuple[Planned, ...]:
        # In one step: another thread plans while a batch runs.
        return tuple(self.batches.values())

    def _file(self, number: int) -> Path:
        return self._folder / f"{number:012d}.json"

    def _write(self, file: Path, text: str) -> None:
        if self._home.is_durable:
            write_durably(file, text)
        else:
            file.write_text(text)


def _planned(file: Path) -> Planned:
    entry = json.loads(file.read_text())
    return Planned(int(file.stem), entry["ms"], tuple(entry["parts"]))


def local_folder(directory: str) -> str:
    """Return the path of a checkpoint directory, which may be written as an address.

    Raises:
        HOME_UNUSABLE: It is not a folder of this machine.
    """
    local = directory.removeprefix("file://").removeprefix("file:")
    Home.at(local)
    return local

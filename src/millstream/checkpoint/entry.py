"""The entries of a checkpoint's logs, parsed strictly."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DASH = "-"
"""What Spark writes for a source that has no offset yet."""

_STAND_IN = "millstream.stand_in"
"""A setting that Spark ignores."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """Where a batch ends: one offset for each source, as JSON."""

    watermark_ms: int
    planned_at_ms: int
    ends: tuple[str, ...]
    conf: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(data: bytes) -> Offsets:
        """Read an entry of the offset log."""
        known, *ends = _lines(data, "v1")
        # Continuous mode knows neither a watermark nor when a batch was planned.
        facts = _object(known or '{"batchWatermarkMs": 0, "batchTimestampMs": 0}')
        if not ends:
            _refuse("it has no offset")
        for end in ends:
            if end != _DASH:
                _json(end)
        watermark, planned = facts["batchWatermarkMs"], facts["batchTimestampMs"]
        return Offsets(int(watermark), int(planned), tuple(ends), dict(facts.get("conf", {})))

    def to_text(self) -> str:
        """Write an entry of the offset log."""
        facts = {"batchWatermarkMs": self.watermark_ms, "batchTimestampMs": self.planned_at_ms}
        known = json.dumps({**facts, "conf": dict(self.conf)}, separators=(",", ":"))
        return "\n".join(("v1", known, *self.ends))

    def as_stand_in(self) -> Offsets:
        """Mark it as a stand-in for lost offsets from which nothing is read again."""
        return replace(self, conf={**self.conf, _STAND_IN: "true"})

    @property
    def is_stand_in(self) -> bool:
        """Whether it is not where its batch ended."""
        return _STAND_IN in self.conf

    @property
    def log_offset(self) -> int | None:
        """The last entry of the file log that the batch reads, if it reads files."""
        match _json(self.ends[0]) if self.ends[0] != _DASH else None:
            case {"logOffset": int(number)}:
                return number
        return None

    @property
    def tables(self) -> tuple[str | None, ...]:
        """What each source reads: the id of a Delta table, "" if it is none; None if not known."""
        ends = (None if end == _DASH else _json(end) for end in self.ends)
        return tuple(end if end is None else _table_id(end) for end in ends)

    @property
    def versions(self) -> Mapping[str, int]:
        """The last version of each Delta table that is read as a whole, by the table's id."""
        found: dict[str, int] = {}
        for end in self.ends:
            match _json(end) if end != _DASH else None:
                case {"reservoirId": str(table), "reservoirVersion": int(next_), **rest}:
                    # While its first snapshot is read, nothing is read as a whole.
                    whole = -1 if rest.get("isStartingVersion") else next_ - 1
                    found[table] = min(whole, found.get(table, whole))
        return found


def _table_id(end: Any) -> str:
    return str(end.get("reservoirId", "")) if isinstance(end, dict) else ""


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """What is known at the end of a batch."""

    watermark_ms: int
    states: Mapping[int, Sequence[Sequence[str]]] = field(default_factory=dict)
    """Operator -> partition -> the name of each store's state."""

    @staticmethod
    def parse(data: bytes) -> CommitEntry:
        """Read an entry of the commit log."""
        [known] = _lines(data, "v1", "v2")
        facts = _object(known)
        states = {int(n): [list(p) for p in s] for n, s in facts.get("stateUniqueIds", {}).items()}
        return CommitEntry(int(facts["nextBatchWatermarkMs"]), states)

    def to_text(self) -> str:
        """Write an entry of the commit log."""
        facts = {"nextBatchWatermarkMs": self.watermark_ms, "stateUniqueIds": self.states}
        return "v2\n" + json.dumps(facts, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file that a file source has read in a batch."""

    path: str
    """As Spark writes it: a URL."""
    timestamp: int
    batch: int
    """The entry of the file log it came with."""

    def to_line(self) -> str:
        """Write a line of the file log."""
        facts = {"path": self.path, "timestamp": self.timestamp, "batchId": self.batch}
        return json.dumps(facts, separators=(",", ":"), ensure_ascii=False)


def parse_query_id(data: bytes) -> str:
    """Read the identity of a query."""
    if not data:
        _refuse("it is empty")
    return str(_object(data.decode())["id"])


def parse_file_log(data: bytes) -> tuple[FileRead, ...]:
    """Read an entry of a file source's log."""
    facts = [_object(line) for line in _lines(data, "v1", least=0)]
    return tuple(FileRead(str(f["path"]), int(f["timestamp"]), int(f["batchId"])) for f in facts)


def parse_source_start(data: bytes) -> str:
    """Read what a source recorded at its first start: Kafka its offsets, a counter the time."""
    [start] = _lines(data.removeprefix(b"\x00"), "v1")
    _json(start)
    return start


def parse_operator(data: bytes) -> str:
    """Read the name of an operator that keeps state."""
    return str(_object(_lines(data, "v1", "v2")[0])["operatorInfo"]["operatorName"])


def _lines(data: bytes, *versions: str, least: int = 1) -> list[str]:
    if not data:
        _refuse("it is empty")
    version, *lines = data.decode().removesuffix("\n").split("\n")
    if version not in versions:
        _refuse(f"its first line is no version that Spark 4.2 writes: {version[:20]!r}")
    if len(lines) < least:
        _refuse("it ends after the version")
    return lines


def _object(text: str) -> dict[str, Any]:
    found = _json(text)
    if not isinstance(found, dict):
        _refuse(f"it holds {text[:20]!r} where an object is due")
    return found


def _json(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        _refuse(f"{text[:20]!r} is not JSON")
    return found


def _refuse(why: str) -> NoReturn:
    raise ValueError(why)

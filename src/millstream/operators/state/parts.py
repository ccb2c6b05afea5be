"""The parts of a bucket of keys: what they hold, and their recent changes."""

from __future__ import annotations

import zlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from millstream.operators.state.raised_rows import RaisedRow

    Row = tuple[Any, ...]

HEAD_AT = -1
"""Where the head is, among the parts of a bucket."""


class Keys(msgspec.Struct, array_like=True):
    """Keys, in two plain dictionaries: no other form is read as fast."""

    memories: dict[str, bytes | None] = msgspec.field(default_factory=dict)
    """The memory of each; among changes, None is for a key that is forgotten."""
    dues: dict[str, int] = msgspec.field(default_factory=dict)
    """When each is due, if it is."""

    def __len__(self) -> int:
        return len(self.memories)

    def put(self, key: str, memory: bytes | None, due_us: int | None) -> None:
        """Set the memory of a key."""
        self.memories[key] = memory
        if due_us is not None:
            self.dues[key] = due_us
        else:
            self.dues.pop(key, None)

    def drop(self, key: str) -> None:
        """Remove a key."""
        self.memories.pop(key, None)
        self.dues.pop(key, None)

    def change(self, changes: Keys) -> None:
        """Apply changes."""
        for key, memory in changes.memories.items():
            if memory is None:
                self.drop(key)
            else:
                self.put(key, memory, changes.dues.get(key))

    def in_parts(self, count: int) -> dict[int, Keys]:
        """Group keys by the part that they belong to."""
        parts: defaultdict[int, Keys] = defaultdict(Keys)
        for key, memory in self.memories.items():
            parts[part_of(key, count)].put(key, memory, self.dues.get(key))
        return parts


KEYS = msgspec.msgpack.Decoder(Keys)
"""Reads a part of a bucket."""


class Head(msgspec.Struct, array_like=True):
    """The entry that describes a bucket."""

    timer: int | None = None
    """When Spark's timer fires."""
    count: int = 1
    """How many parts its keys belong to."""
    stored: set[int] = msgspec.field(default_factory=set)
    """Those of them that are in the state."""
    dues: dict[int, int] = msgspec.field(default_factory=dict)
    """For each part, the time before which none of its keys is due."""
    recent: dict[int, Keys] = msgspec.field(default_factory=dict)
    """What has changed of a part since it was stored."""

    @property
    def is_empty(self) -> bool:
        """Whether it is the head of a bucket without keys."""
        return self.timer is None and not (self.stored or self.dues or self.recent)

    def has_new(self, number: int, keys: Mapping[str, Any]) -> bool:
        """Whether all these keys of a part have changed since it was stored."""
        return number in self.recent and keys.keys() <= self.recent[number].memories.keys()

    @property
    def is_forgetting(self) -> bool:
        """Whether all recent changes are of keys that are forgotten."""
        return all(m is None for keys in self.recent.values() for m in keys.memories.values())


HEAD = msgspec.msgpack.Decoder(Head)
"""Reads a head."""


class TurnResult(NamedTuple):
    """The result of a key's turn."""

    packed: bytes | None
    """The new memory of the key; None if it is empty."""
    due_us: int | None
    """The event time that the frontier must reach for the key to have a turn without rows."""
    answers: Sequence[Row]
    raised: Sequence[RaisedRow] = ()
    """Rows to quarantine."""


class Keyed(Protocol):
    """Processes the rows of one key; must be picklable."""

    def turn(
        self, key: str, packed: bytes | None, rows: Sequence[Row], frontier_us: float
    ) -> TurnResult:
        """Continue from the memory of a key with rows that have arrived, in any order.

        The frontier never goes back, and all rows up to it have arrived. Equal rows, frontiers
        and memories must give equal answers.
        """
        ...


class BucketPart:
    """The keys of one part of a bucket: those that have changed, and those that are stored."""

    def __init__(self, changed: Keys, load: Callable[[], Keys] | None) -> None:
        self.changed, self._load = changed, load
        self._stored = None if load else Keys()
        self.raised: list[RaisedRow] = []
        self.grown = 0
        """How many bytes of memory the turns returned."""

    @property
    def stored(self) -> Keys:
        """What is stored of it, read when it is first asked for."""
        if self._stored is None:
            assert self._load is not None
            self._stored = self._load()
        return self._stored

    def dues(self) -> Iterator[tuple[str, int]]:
        """Yield when each key is due, if it is."""
        yield from self.changed.dues.items()
        changed = self.changed.memories
        yield from ((key, due) for key, due in self.stored.dues.items() if key not in changed)

    def take(
        self,
        keyed: Keyed,
        rows: Mapping[str, Sequence[Row]],
        late: Collection[str],
        frontier: float,
    ) -> list[Row]:
        """Run a turn for the keys that have rows, and for those that are due."""
        answers: list[Row] = []
        for key in sorted(rows.keys() | late):
            is_changed = key in self.changed.memories
            memory = (self.changed if is_changed else self.stored).memories.get(key)
            turn = keyed.turn(key, memory, rows.get(key, ()), frontier)
            answers += turn.answers
            self.raised += turn.raised
            self.grown += len(turn.packed or b"")
            is_stored = self._load and (is_changed or key in self.stored.memories)
            if turn.packed is not None or is_stored:
                self.changed.put(key, turn.packed, turn.due_us)
            else:
                self.changed.drop(key)
        return answers

    def merged(self) -> Keys:
        """Return all keys with the changes applied."""
        self.stored.change(self.changed)
        return self.stored


def part_of(key: str, count: int) -> int:
    """Return which of `count` parts a key belongs to."""
    return zlib.crc32(key.encode()) % count

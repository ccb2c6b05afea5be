"""What a program on both engines consists of, and what is recorded of its run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path
    from types import ModuleType

START = 1_600_000_000
"""The time on the virtual clock when a context starts, in seconds of the Unix epoch."""

Body = Callable[[Any, Any, "Collect"], None]
Queue = Sequence[Sequence[Any]]
Outputs = dict[str, list[tuple[int, list[Any]]]]
"""For each output, the numbers of the batches that it had, and the elements of each."""


@dataclass(frozen=True)
class Program:
    """A program, what arrives on its streams, and how long it runs."""

    body: Body
    queues: tuple[Queue, ...]
    count: int
    interval: float = 1.0
    ordered: frozenset[str] = frozenset()
    """The outputs whose elements have an order that both engines must keep."""

    @property
    def name(self) -> str:
        """The name of the program's function."""
        return self.body.__name__


class Collect:
    """What a program gives its outputs to; a plain value survives a checkpoint of the program."""

    def __init__(self, api: ModuleType, folder: Path, interval: float, start: float = START):
        self.api = api
        """The module of the engine: StreamingContext, DStream and StreamingListener are in it."""
        self.folder = folder
        """An empty folder for files of the program."""
        self.interval = interval
        self.start = start
        self._recorded: dict[str, dict[int, list[Any]]] = defaultdict(dict)
        self._before: dict[int, list[Callable[[], object]]] = defaultdict(list)
        self._done: set[int] = set()
        _RUNS[id(self)] = self

    @property
    def checkpoint(self) -> str:
        """A folder for the checkpoint of the program."""
        return str(self.folder / "checkpoint")

    def __reduce__(self) -> tuple[Any, ...]:
        return _run, (id(self),)

    def __call__(self, name: str, dstream: Any) -> None:
        """Record the elements of every batch of a DStream under a name."""
        dstream.foreachRDD(lambda time, rdd: self.record(name, time, rdd.collect()))

    def record(self, name: str, time: datetime, elements: list[Any]) -> None:
        """Record elements of the batch at a time; called twice, they must be the same."""
        batches, number = self._recorded[name], self.number(time)
        if number in batches:
            again, before = sorted(map(repr, elements)), sorted(map(repr, batches[number]))
            assert again == before, (name, number, elements, batches[number])
        batches[number] = elements

    def number(self, time: datetime) -> int:
        """Return the number of the batch at a time."""
        number = (time.timestamp() - self.start) / self.interval
        assert number == int(number), time
        return int(number)

    def before(self, number: int, action: Callable[[], object]) -> None:
        """Have something done before the batch with a number is cut."""
        self._before[number].append(action)

    def run_before(self, number: int) -> None:
        """Do what the program wants done before a batch; it is done once."""
        actions = self._before.pop(number, ())
        if number not in self._done:
            self._done.add(number)
            for action in actions:
                action()

    @property
    def outputs(self) -> Outputs:
        """What was recorded so far."""
        return {name: sorted(batches.items()) for name, batches in self._recorded.items()}


_RUNS: WeakValueDictionary[int, Collect] = WeakValueDictionary()


def _run(key: int) -> Collect:
    return _RUNS[key]


def written(outputs: Outputs, ordered: frozenset[str] = frozenset()) -> dict[str, list[Any]]:
    """Write outputs such that JSON keeps them and that equal ones are equal."""
    return {
        name: [
            [
                number,
                [repr(e) for e in elements] if name in ordered else sorted(map(repr, elements)),
            ]
            for number, elements in batches
        ]
        for name, batches in sorted(outputs.items())
    }

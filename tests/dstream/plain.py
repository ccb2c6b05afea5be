"""The rule of each operation in plain Python, and nothing of Spark.

A stream is the elements of its batches, by number. It has a batch at the multiples of its slide,
from the first on. A window of `w` batches that slides by `s` has at `n`, a multiple of `s`, the
elements of the batches in (n - w, n]: the batch at its left end is not in it.

One rule of pyspark.streaming is not in its documentation. A window with an inverse function is
computed from the window before only if it is at least five times as long as its slide; shorter
ones are reduced anew. So a key whose last value has left stays in a long window, with what the
inverse function has left of it, and is missing in a short one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

Reducer = Callable[[Any, Any], Any]
INVERSE_FROM = 5
"""How many slides a window is long, at least, for its inverse function to be used."""


@dataclass(frozen=True)
class Stream:
    """A stream: its slide in batches, and the elements of each of its batches."""

    batches: dict[int, list[Any]]
    slide: int = 1

    @staticmethod
    def of(queue: Iterable[list[Any]], count: int) -> Stream:
        """A queue of batches; when it is empty, so are its batches."""
        found = dict(enumerate(queue, 1))
        return Stream({number: [*found.get(number, [])] for number in range(1, count + 1)})

    def each(self, f: Callable[[list[Any]], Iterable[Any]]) -> Stream:
        """A function of the elements of every batch alone."""
        return Stream({number: [*f(batch)] for number, batch in self.batches.items()}, self.slide)

    def each_with(
        self, other: Stream, f: Callable[[list[Any], list[Any]], Iterable[Any]]
    ) -> Stream:
        """A function of the batches of two streams; where the other has none, it is empty."""
        at = other.batches
        return Stream(
            {n: [*f(batch, at.get(n, []))] for n, batch in self.batches.items()}, self.slide
        )

    def between(self, after: int, to: int) -> list[list[Any]]:
        """The batches in (after, to]."""
        return [batch for number, batch in self.batches.items() if after < number <= to]

    def window(self, width: int, slide: int) -> Stream:
        """The elements of the last batches."""
        times = range(slide, max(self.batches, default=0) + 1, slide)
        found = {n: [e for batch in self.between(n - width, n) for e in batch] for n in times}
        return Stream(found, slide)


def reduced(pairs: Iterable[tuple[Any, Any]], f: Reducer) -> dict[Any, Any]:
    """The values of each key, reduced."""
    return {key: reduce(f, values) for key, values in grouped(pairs).items()}


def grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """The values of each key."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return dict(groups)


def cogrouped(
    one: Iterable[tuple[Any, Any]], other: Iterable[tuple[Any, Any]]
) -> dict[Any, tuple[list[Any], list[Any]]]:
    """The values of each key on both sides."""
    left, right = grouped(one), grouped(other)
    return {key: (left.get(key, []), right.get(key, [])) for key in {**left, **right}}


def joined(
    one: Iterable[tuple[Any, Any]],
    other: Iterable[tuple[Any, Any]],
    *,
    left: bool = False,
    right: bool = False,
) -> list[tuple[Any, tuple[Any, Any]]]:
    """Every pair of values of one key; of an outer side, also those without a partner."""
    return [
        (key, (a, b))
        for key, (mine, its) in cogrouped(one, other).items()
        for a in (mine or ([None] if right else []))
        for b in (its or ([None] if left else []))
    ]


@dataclass(frozen=True)
class Window:
    """A window, in batches, which is reduced by key."""

    width: int
    slide: int
    f: Reducer
    inverse: Reducer | None = None
    keep: Callable[[tuple[Any, Any]], bool] | None = None

    def __call__(self, stream: Stream) -> Stream:
        """The reduced values of each key in each window."""
        small = stream.each(lambda batch: reduced(batch, self.f).items())
        if self.inverse is None:
            return small.window(self.width, self.slide).each(
                lambda batch: reduced(batch, self.f).items()
            )
        found: dict[int, list[Any]] = {}
        for n in range(self.slide, max(stream.batches, default=0) + 1, self.slide):
            before = found.get(n - self.slide)
            if before is None or self.width < INVERSE_FROM * self.slide:
                before, entered = [], small.between(n - self.width, n)
            else:
                before = self._without(
                    before, small.between(n - self.slide - self.width, n - self.width)
                )
                entered = small.between(n - self.slide, n)
            pairs = [*before, *(pair for batch in entered for pair in batch)]
            found[n] = [pair for pair in reduced(pairs, self.f).items() if self._kept(pair)]
        return Stream(found, self.slide)

    def _without(self, before: list[Any], left: list[list[Any]]) -> list[Any]:
        assert self.inverse
        gone = reduced((pair for batch in left for pair in batch), self.f)
        return [(k, self.inverse(v, gone[k]) if k in gone else v) for k, v in before]

    def _kept(self, pair: tuple[Any, Any]) -> bool:
        return self.keep is None or bool(self.keep(pair))


def updated(
    stream: Stream,
    update: Callable[[list[Any], Any], Any],
    initial: Iterable[tuple[Any, Any]] = (),
) -> Stream:
    """The state of each key: on every batch, for each key that has values or a state."""
    states, found = dict(initial), {}
    for number, batch in stream.batches.items():
        values = grouped(batch)
        new = {key: update(values.get(key, []), states.get(key)) for key in {**states, **values}}
        states = {key: state for key, state in new.items() if state is not None}
        found[number] = [*states.items()]
    return Stream(found, stream.slide)


def mapped(
    stream: Stream,
    call: Callable[[Any, Any, Any], tuple[Any, Any]],
    timeout: int | None = None,
    initial: Iterable[tuple[Any, Any]] = (),
) -> tuple[Stream, Stream]:
    """What a function of (key, value, state) returns, and the states after each batch.

    It returns an element or None, and the new state. After the values of a batch it is called, with
    None as the value, for each key whose last value is more than `timeout` batches old; the state
    of that key goes then. A state that was there at the start is as old as the first batch.
    """
    first = min(stream.batches, default=0)
    states = {key: (state, first) for key, state in initial}
    given: dict[int, list[Any]] = {}
    kept: dict[int, list[Any]] = {}
    for number, batch in stream.batches.items():
        answers = []
        for key, value in batch:
            answer, state = call(key, value, states[key][0] if key in states else None)
            answers.append(answer)
            states[key] = (state, number)
        for key, (state, since) in [*states.items()]:
            if timeout is not None and since < number - timeout:
                answers.append(call(key, None, state)[0])
                del states[key]
        given[number] = [answer for answer in answers if answer is not None]
        kept[number] = [(key, state) for key, (state, _) in states.items()]
    return Stream(given, stream.slide), Stream(kept, stream.slide)


def counted(batch: Iterable[Any]) -> list[tuple[Any, int]]:
    """How often each element is there."""
    return [*Counter(batch).items()]

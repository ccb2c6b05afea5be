"""Random programs: chains of operations on random batches, for an engine and for plain Python.

An operation is said twice, with the same arguments: as a method of a DStream, and by its rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import add, sub
from random import Random
from typing import TYPE_CHECKING, Any

from tests.dstream import plain
from tests.dstream.plain import Stream, Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.dstream.program import Collect

PAIRS, NUMBERS = "pairs", "numbers"
INITIAL = ((0, 40), (9, 2))
"""States that some programs begin with."""


Draw = Callable[[Random], Any]


def _tuple(*draws: Draw) -> Draw:
    return lambda dice: tuple(draw(dice) for draw in draws)


def _int(low: int, high: int) -> Draw:
    return lambda dice: dice.randint(low, high)


def _one_of(values: Sequence[Any]) -> Draw:
    return lambda dice: dice.choice(values)


_NONE = _tuple()


@dataclass(frozen=True)
class Operation:
    """An operation: what it reads and gives, as a DStream's method and as its rule.

    Both are called with the stream, the other stream, and the arguments.
    """

    reads: str
    gives: str
    dstream: Callable[..., Any]
    rule: Callable[..., Stream]
    arguments: Draw = _NONE
    windowed: bool = False
    """The first two arguments are a window's length and slide, in slides of its stream."""
    alike: bool = False
    """The other stream must have the same slide."""
    only_ours: bool = False
    """Python has it on `millstream.dstream` alone."""


def _total(values: list[int], state: int | None) -> int:
    return sum(values) + (state or 0)


def _latest(values: list[int], state: int | None) -> int | None:
    return max(values) if values else state


def _passing(values: list[int], state: int | None) -> int | None:
    """Count down to nothing when no value comes."""
    if values:
        return sum(values) % 5
    return state - 1 if state else None


def _calls(values: list[int], state: int | None) -> int:
    return (state or 0) + 1


def _sums(pair: tuple[Any, Any]) -> int:
    one, other = pair
    return (one or 0) * 3 + (other or 0)


def _sizes(groups: Any) -> int:
    one, other = groups
    return len(list(one)) * 10 + len(list(other))


def _some(pair: tuple[Any, Any]) -> bool:
    return bool(pair[1])


def _total_of(key: int, value: int | None, state: int | None) -> tuple[Any, int]:
    if value is None:
        return (key, -1), 0
    return (key, value) if value % 3 else None, (state or 0) + value


def _map(key: int, value: int | None, state: Any) -> Any:
    answer, total = _total_of(key, value, state.get() if state.exists() else None)
    if not state.isTimingOut():
        state.update(total)
    return answer


def _spec(timeout: int | None, initial: Any) -> Any:
    from millstream.dstream import StateSpec

    spec = StateSpec.function(_map).numPartitions(2)
    spec = spec if timeout is None else spec.timeout(timeout)
    return spec.initialState([*initial]) if initial else spec


REDUCERS: dict[str, Callable[[Any, Any], Any]] = {"add": add, "max": max, "min": min}
UPDATES: dict[str, Callable[..., Any]] = {
    "total": _total, "latest": _latest, "passing": _passing, "calls": _calls
}  # fmt: skip
KEEPS: dict[str, Callable[..., bool] | None] = {"all": None, "some": _some}

_small = _int(1, 3)
_reducer = _one_of([*REDUCERS])
_window = (_int(1, 7), _int(1, 3))
_idle = _tuple(_one_of([None, 1, 2, 3, 4]), _one_of([(), INITIAL]))
_inverse_window = (_int(1, 9), _int(1, 2))


def _joining(name: str, **sides: bool) -> Operation:
    return Operation(
        PAIRS,
        PAIRS,
        lambda s, o, n: getattr(s, name)(o, n).mapValues(_sums),
        lambda s, o, n: s.each_with(
            o, lambda a, b: [(k, _sums(pair)) for k, pair in plain.joined(a, b, **sides)]
        ),
        _tuple(_small),
    )


def _each(f: Callable[..., Any]) -> Callable[..., Stream]:
    """A rule that looks at the batch alone; `f` has the batch and the arguments."""
    return lambda s, o, *arguments: s.each(lambda batch: f(batch, *arguments))


def _ones(s: Stream, key: Callable[[Any], Any]) -> Stream:
    return s.each(lambda batch: [(key(e), 1) for e in batch])


def _values(s: Stream) -> Stream:
    return s.each(lambda batch: [value for _, value in batch])


OPERATIONS: dict[str, Operation] = {
    "filter": Operation(
        PAIRS, PAIRS,
        lambda s, o, n: s.filter(lambda kv: kv[1] % n == 0),
        _each(lambda batch, n: [kv for kv in batch if kv[1] % n == 0]),
        _tuple(_small),
    ),
    "map": Operation(
        PAIRS, PAIRS,
        lambda s, o, n: s.map(lambda kv: (kv[1] % n, kv[0] + kv[1])),
        _each(lambda batch, n: [(v % n, k + v) for k, v in batch]),
        _tuple(_small),
    ),
    "mapValues": Operation(
        PAIRS, PAIRS,
        lambda s, o, n: s.mapValues(lambda v: v * 2 - n),
        _each(lambda batch, n: [(k, v * 2 - n) for k, v in batch]),
        _tuple(_small),
    ),
    "flatMapValues": Operation(
        PAIRS, PAIRS,
        lambda s, o, n: s.flatMapValues(lambda v: range(v % n)),
        _each(lambda batch, n: [(k, i) for k, v in batch for i in range(v % n)]),
        _tuple(_small),
    ),
    "flatMap": Operation(
        PAIRS, NUMBERS,
        lambda s, o: s.flatMap(lambda kv: kv),
        _each(lambda batch: [part for pair in batch for part in pair]),
    ),
    "reduceByKey": Operation(
        PAIRS, PAIRS,
        lambda s, o, f, n: s.reduceByKey(REDUCERS[f], n),
        _each(lambda batch, f, n: plain.reduced(batch, REDUCERS[f]).items()),
        _tuple(_reducer, _small),
    ),
    "combineByKey": Operation(
        PAIRS, PAIRS,
        lambda s, o: s.combineByKey(lambda v: [v], lambda c, v: [*c, v], add).mapValues(len),
        _each(lambda batch: [(k, len(values)) for k, values in plain.grouped(batch).items()]),
    ),
    "groupByKey": Operation(
        PAIRS, PAIRS,
        lambda s, o, n: s.groupByKey(n).mapValues(lambda vs: max(vs) - min(vs)),
        _each(lambda batch, n: [(k, max(vs) - min(vs)) for k, vs in plain.grouped(batch).items()]),
        _tuple(_small),
    ),
    "partitionBy": Operation(
        PAIRS, PAIRS, lambda s, o, n: s.partitionBy(n), _each(lambda batch, n: batch),
        _tuple(_small),
    ),
    "repartition": Operation(
        PAIRS, PAIRS, lambda s, o, n: s.repartition(n), _each(lambda batch, n: batch),
        _tuple(_small),
    ),
    "glom": Operation(
        PAIRS, PAIRS, lambda s, o: s.glom().flatMap(lambda part: part), _each(lambda batch: batch)
    ),
    "cache": Operation(PAIRS, PAIRS, lambda s, o: s.cache(), _each(lambda batch: batch)),
    "distinct": Operation(
        PAIRS, PAIRS,
        lambda s, o: s.transform(lambda rdd: rdd.distinct()),
        _each(lambda batch: {*batch}),
    ),
    "mapPartitions": Operation(
        PAIRS, NUMBERS,
        lambda s, o: s.mapPartitions(lambda part: (v for _, v in part)),
        _each(lambda batch: [v for _, v in batch]),
    ),
    "values": Operation(
        PAIRS, NUMBERS,
        lambda s, o: s.mapPartitionsWithIndex(lambda i, part: [v for _, v in part]),
        _each(lambda batch: [v for _, v in batch]),
    ),
    "keyed": Operation(
        NUMBERS, PAIRS,
        lambda s, o, n: s.map(lambda e: (e % n, e)),
        _each(lambda batch, n: [(e % n, e) for e in batch]),
        _tuple(_small),
    ),
    "countByValue": Operation(NUMBERS, PAIRS, lambda s, o: s.countByValue(), _each(plain.counted)),
    "count": Operation(NUMBERS, NUMBERS, lambda s, o: s.count(), _each(lambda batch: [len(batch)])),
    "reduce": Operation(
        NUMBERS, NUMBERS,
        lambda s, o, f: s.reduce(REDUCERS[f]),
        _each(lambda batch, f: plain.reduced(((0, e) for e in batch), REDUCERS[f]).values()),
        _tuple(_reducer),
    ),
    "union": Operation(
        PAIRS, PAIRS,
        lambda s, o: s.union(o),
        lambda s, o: s.each_with(o, lambda a, b: [*a, *b]),
        alike=True,
    ),
    "ssc.union": Operation(
        PAIRS, PAIRS,
        lambda s, o: s.context().union(s, o.map(lambda kv: kv), s),
        lambda s, o: s.each_with(o, lambda a, b: [*a, *b, *a]),
        alike=True,
    ),
    "ssc.transform": Operation(
        PAIRS, PAIRS,
        lambda s, o: s.context().transform([s, o], lambda rdds: rdds[1].subtractByKey(rdds[0])),
        lambda s, o: s.each_with(o, lambda a, b: [kv for kv in b if kv[0] not in dict(a)]),
        alike=True,
    ),
    "transformWith": Operation(
        PAIRS, PAIRS,
        lambda s, o: s.transformWith(lambda a, b: a.subtractByKey(b), o),
        lambda s, o: s.each_with(o, lambda a, b: [kv for kv in a if kv[0] not in dict(b)]),
    ),
    "cogroup": Operation(
        PAIRS, PAIRS,
        lambda s, o, n: s.cogroup(o, n).mapValues(_sizes),
        lambda s, o, n: s.each_with(
            o, lambda a, b: [(k, _sizes(vs)) for k, vs in plain.cogrouped(a, b).items()]
        ),
        _tuple(_small),
    ),
    "join": _joining("join"),
    "leftOuterJoin": _joining("leftOuterJoin", left=True),
    "rightOuterJoin": _joining("rightOuterJoin", right=True),
    "fullOuterJoin": _joining("fullOuterJoin", left=True, right=True),
    "window": Operation(
        PAIRS, PAIRS,
        lambda s, o, w, d: s.window(w, d),
        lambda s, o, w, d: s.window(w, d),
        _tuple(*_window),
        windowed=True,
    ),
    "reduceByKeyAndWindow": Operation(
        PAIRS, PAIRS,
        lambda s, o, w, d, f: s.reduceByKeyAndWindow(REDUCERS[f], None, w, d),
        lambda s, o, w, d, f: Window(w, d, REDUCERS[f])(s),
        _tuple(*_window, _reducer),
        windowed=True,
    ),
    "reduceByKeyAndWindow with inverse": Operation(
        PAIRS, PAIRS,
        lambda s, o, w, d, keep: s.reduceByKeyAndWindow(add, sub, w, d, 2, KEEPS[keep]),
        lambda s, o, w, d, keep: Window(w, d, add, sub, KEEPS[keep])(s),
        _tuple(*_inverse_window, _one_of([*KEEPS])),
        windowed=True,
    ),
    "groupByKeyAndWindow": Operation(
        PAIRS, PAIRS,
        lambda s, o, w, d: s.groupByKeyAndWindow(w, d).mapValues(len),
        lambda s, o, w, d: Window(w, d, add, sub)(_ones_by_key(s)),
        _tuple(*_inverse_window),
        windowed=True,
    ),
    "reduceByWindow": Operation(
        NUMBERS, NUMBERS,
        lambda s, o, w, d, f: s.reduceByWindow(REDUCERS[f], None, w, d),
        lambda s, o, w, d, f: _values(
            Window(w, d, REDUCERS[f])(s.each(lambda batch: [(1, e) for e in batch]))
        ),
        _tuple(*_window, _reducer),
        windowed=True,
    ),
    "reduceByWindow with inverse": Operation(
        NUMBERS, NUMBERS,
        lambda s, o, w, d: s.reduceByWindow(add, sub, w, d),
        lambda s, o, w, d: _values(
            Window(w, d, add, sub)(s.each(lambda batch: [(1, e) for e in batch]))
        ),
        _tuple(*_inverse_window),
        windowed=True,
    ),
    "countByWindow": Operation(
        NUMBERS, NUMBERS,
        lambda s, o, w, d: s.countByWindow(w, d),
        lambda s, o, w, d: _values(Window(w, d, add, sub)(_ones(s, lambda e: 1))),
        _tuple(*_inverse_window),
        windowed=True,
    ),
    "countByValueAndWindow": Operation(
        NUMBERS, PAIRS,
        lambda s, o, w, d: s.countByValueAndWindow(w, d),
        lambda s, o, w, d: Window(w, d, add, sub)(_ones(s, lambda e: e)).each(
            lambda batch: [kv for kv in batch if kv[1] > 0]
        ),
        _tuple(*_inverse_window),
        windowed=True,
    ),
    "updateStateByKey": Operation(
        PAIRS, PAIRS,
        lambda s, o, f, n: s.updateStateByKey(UPDATES[f], n),
        lambda s, o, f, n: plain.updated(s, UPDATES[f]),
        _tuple(_one_of([*UPDATES]), _small),
    ),
    "updateStateByKey with initialRDD": Operation(
        PAIRS, PAIRS,
        lambda s, o, f: s.updateStateByKey(UPDATES[f], 2, [*INITIAL]),
        lambda s, o, f: plain.updated(s, UPDATES[f], INITIAL),
        _tuple(_one_of([*UPDATES])),
    ),
    "mapWithState": Operation(
        PAIRS, PAIRS,
        lambda s, o, *arguments: s.mapWithState(_spec(*arguments)),
        lambda s, o, *arguments: plain.mapped(s, _total_of, *arguments)[0],
        _idle,
        only_ours=True,
    ),
    "stateSnapshots": Operation(
        PAIRS, PAIRS,
        lambda s, o, *arguments: s.mapWithState(_spec(*arguments)).stateSnapshots(),
        lambda s, o, *arguments: plain.mapped(s, _total_of, *arguments)[1],
        _idle,
        only_ours=True,
    ),
}  # fmt: skip


def _ones_by_key(s: Stream) -> Stream:
    return s.each(lambda batch: [(k, 1) for k, _ in batch])


@dataclass(frozen=True)
class Step:
    """One operation of a random program, with its arguments, durations in batches."""

    operation: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class RandomProgram:
    """A chain of operations on the first of two streams."""

    steps: tuple[Step, ...]
    queues: tuple[tuple[list[Any], ...], ...]
    crashes: tuple[tuple[int, str], ...] = ()
    """Batches in which the driver dies, each with the point where it does."""
    first: int = 0
    """The first step whose answer is an output; those after it are outputs too."""

    @property
    def count(self) -> int:
        """How many batches it runs for."""
        return len(self.queues[0])

    @property
    def names(self) -> list[str]:
        """Its steps, numbered."""
        return [f"{number} {step.operation}" for number, step in enumerate(self.steps, 1)]

    def body(self, ssc: Any, streams: Any, collect: Collect) -> None:
        """The program, for an engine."""
        ssc.checkpoint(collect.checkpoint)
        self.declare(ssc, streams, collect)

    def declare(self, ssc: Any, streams: Any, collect: Callable[[str, Any], None]) -> None:
        """The operations, and what is made of the streams that are outputs."""
        stream, second = streams
        slide = 1
        for name, step in zip(self.names, self.steps, strict=True):
            operation = OPERATIONS[step.operation]
            other = second.window(slide, slide) if operation.alike else second
            stream = operation.dstream(stream, other, *step.arguments)
            slide = step.arguments[1] if operation.windowed else slide
            if name in self.names[self.first :]:
                collect(name, stream)

    def answers(self) -> dict[str, list[tuple[int, list[Any]]]]:
        """What it gives, by the rules."""
        stream, second = (Stream.of(queue, self.count) for queue in self.queues)
        found = {}
        for name, step in zip(self.names, self.steps, strict=True):
            operation = OPERATIONS[step.operation]
            other = second.window(stream.slide, stream.slide) if operation.alike else second
            stream = operation.rule(stream, other, *step.arguments)
            found[name] = [*stream.batches.items()]
        return {name: found[name] for name in self.names[self.first :] if found[name]}


_MOST = 6
"""The longest slide of a program, in batches."""


def random_program(dice: Random, points: Sequence[str] = (), *, ours: bool = True) -> RandomProgram:
    """A chain of one to five operations; with points, its driver dies there."""
    kind, slide, steps = PAIRS, 1, []
    for _ in range(dice.randint(1, 5)):
        name = dice.choice(
            [n for n, o in OPERATIONS.items() if o.reads == kind and ours >= o.only_ours]
        )
        operation = OPERATIONS[name]
        arguments = operation.arguments(dice)
        if operation.windowed:
            length, by, *more = arguments
            by = by if slide * by <= _MOST else 1
            arguments = (length * slide, by * slide, *more)
            slide *= by
        steps.append(Step(name, arguments))
        kind = operation.gives
    count = dice.randint(4, 10)
    first, second = (tuple(_batch(dice) for _ in range(count)) for _ in range(2))
    crashes = (
        [(dice.randint(1, count), dice.choice(points)) for _ in range(dice.randint(1, 3))]
        if points
        else []
    )
    output = dice.choice((len(steps) - 1, len(steps) - 1, 0))
    return RandomProgram(tuple(steps), (first, second), tuple(sorted(crashes)), output)


def _batch(dice: Random) -> list[Any]:
    """A third of batches is empty."""
    size = dice.choice((0, 0, 1, 3, 5, 8))
    return [(dice.randint(0, 4), dice.randint(-3, 9)) for _ in range(size)]

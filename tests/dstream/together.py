"""Several random programs in one context: a batch of all of them costs a few jobs of Spark."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.dstream.program import written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from tests.dstream.chance import RandomProgram
    from tests.dstream.program import Collect, Outputs, Queue


@dataclass(frozen=True)
class Together:
    """Programs that run beside each other, and where their driver dies."""

    programs: tuple[RandomProgram, ...]
    crashes: tuple[tuple[int, str], ...] = ()

    @staticmethod
    def of(programs: Sequence[RandomProgram], points: Sequence[str], dice: Random) -> Together:
        """Put programs together; with points, the driver dies at some of them."""
        last = max(program.count for program in programs)
        deaths = [(dice.randint(1, last), dice.choice(points)) for _ in range(3 if points else 0)]
        return Together(tuple(programs), tuple(sorted(deaths)))

    @property
    def queues(self) -> tuple[Queue, ...]:
        """What arrives: on two streams for each program."""
        return tuple(queue for program in self.programs for queue in program.queues)

    def body(self, ssc: Any, streams: Any, collect: Collect) -> None:
        """All programs; outputs of one slide are collected by one job."""
        found: dict[float, list[tuple[str, Any]]] = defaultdict(list)
        for number, program in enumerate(self.programs):

            def keep(name: str, stream: Any, number: int = number) -> None:
                found[stream._slideDuration].append((f"{number} {name}", stream))

            program.declare(ssc, streams[2 * number : 2 * number + 2], keep)
        ssc.checkpoint(collect.checkpoint)
        for outputs in found.values():
            names = [name for name, _ in outputs]
            tagged = [stream.map(partial(_tag, name)) for name, stream in outputs]
            ssc.union(*tagged).foreachRDD(partial(_record, collect, names))

    def differences(self, answers: Outputs) -> list[RandomProgram]:
        """The programs whose answers are not those of the rules."""
        wrong = []
        for number, program in enumerate(self.programs):
            mine = {
                name.partition(" ")[2]: [each for each in batches if each[0] <= program.count]
                for name, batches in answers.items()
                if name.partition(" ")[0] == str(number)
            }
            had = {name: batches for name, batches in mine.items() if batches}
            if written(had) != written(program.answers()):
                wrong.append(program)
        return wrong


def _tag(name: str, element: Any) -> tuple[str, Any]:
    return name, element


def _record(collect: Collect, names: Sequence[str], time: Any, rdd: Any) -> None:
    elements: dict[str, list[Any]] = {name: [] for name in names}
    for name, element in rdd.collect():
        elements[name].append(element)
    for name in names:
        collect.record(name, time, elements[name])

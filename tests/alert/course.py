"""A deliverer driven through chance: failures, deaths at every point, zombies; and the count."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.alert.notices import Scene, alert, row

import millstream as ms
from millstream.alert.deliveries import Deliveries
from millstream.crash import DELIVERY_POINTS, armed
from millstream.errors import OvertakenError
from millstream.testing.hook import Hook, Reply

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.alert.deliver import Deliverer
    from millstream.model.dataset import Alert

REPLIES = (Reply(500), Reply(429, {"Retry-After": "3"}), Reply(drops=True), Reply(503))


class DiesError(BaseException):
    """The driver dies."""


@dataclass
class Outcome:
    """What became of the rows of an outbox."""

    rows: int = 0
    posts: int = 0
    deaths: int = 0
    zombies: int = 0
    lost: int = 0
    repeated: int = 0
    """Posts of a notice after the first: because it failed, or because a driver died."""
    rekeyed: int = 0
    """Rows that were sent under more than one key, or keys of more than one row."""
    by_zombies: int = 0
    """Deliveries by a driver that was overtaken."""
    untold: int = 0
    """Deliveries that are not noted as delivered at the end."""

    def plus(self, other: Outcome) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Course:
    """One home from its first row to the last delivery."""

    scene: Scene
    dice: random.Random
    outcome: Outcome = field(default_factory=Outcome)
    committed: list[Any] = field(default_factory=list)

    def run(self) -> Outcome:
        with Hook() as hook:
            reported = alert(ms.Webhook(hook.address))
            for _ in range(self.dice.randint(1, 5)):
                self._step(reported, hook)
            hook.replies.clear()
            self.scene.at += 10_000
            last = self.scene.driver(reported)
            last.drain()
            last.close()
            self._count(hook)
        return self.outcome

    def _step(self, reported: Alert, hook: Hook) -> None:
        rows = [row(self.dice.choice("abcdef")) for _ in range(self.dice.randint(0, 5))]
        self.committed += rows
        self.scene.commit(*rows)
        hook.replies.clear()
        for _ in range(self.dice.randint(0, 4)):
            hook.replies.append(self.dice.choice((Reply(), Reply(), *REPLIES)))
        self.scene.at += self.dice.choice((0, 1, 5))
        driver = self.scene.driver(reported)
        self._drain(driver, self.dice.choice(sorted(DELIVERY_POINTS)), self.dice.randint(1, 6))
        if self.dice.random() < 0.3:
            self._wake(driver, reported, hook)
        driver.close()

    def _drain(self, driver: Deliverer, point: str, nth: int) -> None:
        passed = 0

        def look(here: str, *_: object) -> None:
            nonlocal passed
            passed += here == point
            if here == point and passed == nth:
                raise DiesError

        with armed(self.scene.home.path, look):
            try:
                driver.drain()
            except DiesError:
                self.outcome.deaths += 1

    def _wake(self, zombie: Deliverer, reported: Alert, hook: Hook) -> None:
        """Let another driver take over, and the first go on as if nothing had happened."""
        self.scene.driver(reported).close()
        before = len(hook.received)
        self.scene.at += 1_000
        with suppress(OvertakenError):
            zombie.drain()
        self.outcome.zombies += 1
        self.outcome.by_zombies += len(hook.received) - before

    def _count(self, hook: Hook) -> None:
        reported = [(each.key, each.body["row"]["order"]) for each in hook.received]
        wanted = sorted(each["order"] for each in self.committed)
        distinct = set(reported)
        deliveries = Deliveries(self.scene.home.alerts)
        states = deliveries.counts()
        deliveries.close()
        out = self.outcome
        out.rows, out.posts = len(wanted), len(reported)
        out.lost = len(wanted) - len({key for key, _ in reported})
        out.rekeyed = len(distinct) - len({key for key, _ in reported})
        out.rekeyed += sorted(order for _, order in distinct) != wanted
        out.repeated = len(reported) - len(distinct)
        out.untold = sum(states.values()) - states["delivered"]


def run_course(folder: Path, seed: int) -> Outcome:
    """Run the course of a seed."""
    return Course(Scene.of(folder), random.Random(seed)).run()

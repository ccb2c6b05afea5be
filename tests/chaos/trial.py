"""One home, one fault after another: a restart after a fault is itself the victim of the next."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from tests.chaos.inflict import inflict
from tests.chaos.oracle import Oracle, compare_with_batch
from tests.chaos.poll import Poller
from tests.chaos.report import Outcome, TrialReport
from tests.chaos.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.chaos.fault import Fault
    from tests.chaos.feed import Feeder

_FED_BEFORE = 2
_ORPHANS_END_WITHIN_S = 20.0


class Trial:
    """Faults on one home of one app, judged after each and in the end; to be used in a `with`."""

    def __init__(self, app: str, feeder: Feeder, place: Path) -> None:
        self.scene = Scene(app, feeder, place)
        self.outcomes: list[Outcome] = []
        self._place = place
        self._oracle = Oracle(self.scene.home, feeder.expected)
        self._poller = Poller(self.scene.home)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(self._poller)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self.scene.end_orphans()

    def suffer(self, fault: Fault) -> Outcome:
        """Let a fault happen to the next driver; look at the tables when it is dead."""
        for _ in range(_FED_BEFORE):
            self.scene.feeder.feed()
        began = time.monotonic()
        ending = inflict(self.scene, fault, self._oracle.last_batch)
        broken = ending.broken
        if outlived := self.scene.end_orphans(after_s=_ORPHANS_END_WITHIN_S):
            broken = f"{broken} {len(outlived)} processes outlived their driver".strip()
        findings = self._oracle.look() + self._poller.findings
        self._recovered(ending.started_at)
        outcome = Outcome(
            fault=str(fault),
            kind=fault.kind,
            struck=ending.struck,
            lasted_s=round(time.monotonic() - began, 2),
            recovery_s=self._until_batch(ending.struck_at),
            broken=broken,
            findings=findings,
        )
        self.outcomes.append(outcome)
        return outcome

    def finish(self, spark: SparkSession) -> TrialReport:
        """Let the app take in all that is left, and hold its tables to the batch answer."""
        self.scene.end_orphans()
        graph, home, broken = self.scene.app.graph, self.scene.home, ""
        try:
            self.scene.app.run(home=home.path, once=True, fail_fast=True)
        except Exception as error:
            broken = "; because ".join(_chain(error))
        found = self._oracle.settle() + self._poller.findings
        if not broken:
            found += compare_with_batch(graph, spark, home, self._place / "batch")
        return TrialReport(
            app=self.scene.app.name,
            rows=self._oracle.rows,
            batches=self._oracle.batches,
            outcomes=tuple(self.outcomes),
            findings=found,
            broken=broken,
        )

    def _recovered(self, started_at: float) -> None:
        """Say of the fault before how long the driver after it took to its first batch."""
        if self.outcomes and self.outcomes[-1].recovery_s is None:
            took_s = self._until_batch(started_at)
            self.outcomes[-1] = replace(self.outcomes[-1], recovery_s=took_s)

    def _until_batch(self, moment: float | None) -> float | None:
        if moment is None or (at := self._oracle.first_batch_after(moment)) is None:
            return None
        return round(at - moment, 2)


def _chain(error: BaseException | None) -> Iterator[str]:
    """Say what an error is, and what it came from."""
    while error is not None:
        yield f"{type(error).__name__}: {error}"
        error = error.__cause__

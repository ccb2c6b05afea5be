"""Doing each kind of fault to a driver, and seeing that it behaves as promised."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.chaos.count import held_back
from tests.chaos.fault import AtCall, AtMoment, AtPoint, JvmKilled, Overtaken, WorkersKilled
from tests.chaos.process import process_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.chaos.driver import Driver
    from tests.chaos.fault import Fault
    from tests.chaos.process import Process
    from tests.chaos.scene import Scene

_ENDS_WITHIN_S = 120.0
_MORE_BATCHES = 4


@dataclass(frozen=True, slots=True)
class Ending:
    """What became of a fault."""

    started_at: float
    """When the driver was started, in seconds since 1970."""
    struck: bool = True
    """Whether the driver came by the place at all."""
    struck_at: float | None = None
    """When a fault struck that the same driver, or one beside it, has to get over."""
    broken: str = ""
    """What the driver did that it must not do."""


def inflict(scene: Scene, fault: Fault, last_batch: Callable[[str], int]) -> Ending:
    """Start a driver and let a fault happen to it; in the end it is dead."""
    match fault:
        case AtPoint():
            return _at_point(scene, fault.crash_at(last_batch(fault.query)))
        case AtCall():
            return _at_call(scene, fault)
        case AtMoment():
            return _at_moment(scene, fault)
        case WorkersKilled():
            return _kill_workers(scene, fault)
        case JvmKilled():
            return _kill_jvm(scene, fault)
        case Overtaken():
            return _overtake(scene, fault)


def _at_point(scene: Scene, place: str) -> Ending:
    with scene.driver(crash_at=place) as driver:
        scene.wait(lambda: driver.ended is not None)
        return _killed(driver, struck=driver.ended == -signal.SIGKILL)


def _at_call(scene: Scene, fault: AtCall) -> Ending:
    with scene.driver(call=fault) as driver:
        scene.wait(lambda: driver.ended is not None or _victim(scene, driver, fault) is not None)
        if (victim := _victim(scene, driver, fault)) is None:
            return _killed(driver, struck=False)
        held = scene.batches
        victim.send(signal.SIGKILL)
        # A JVM takes the driver with it; without a worker the driver goes on.
        over = scene.wait(
            lambda: driver.ended is not None or scene.batches >= held + _MORE_BATCHES,
            within_s=_ENDS_WITHIN_S,
        )
        stuck = "" if over else f"neither ended nor went on without {' '.join(victim.command)}"
        return Ending(driver.started_at, broken=stuck)


def _victim(scene: Scene, driver: Driver, fault: AtCall) -> Process | None:
    """Find the process whose thread is held back at the call."""
    trace = scene.trace.read_text(errors="replace") if scene.trace.exists() else ""
    thread = held_back(trace, fault.nth)
    number = process_of(thread) if thread is not None else None
    return next((p for p in driver.family if p.pid == number), None)


def _at_moment(scene: Scene, fault: AtMoment) -> Ending:
    with scene.driver() as driver:
        scene.wait(lambda: driver.ended is not None, within_s=fault.after_s)
        ending = _killed(driver, struck=driver.ended is None)
        if fault.whole:
            driver.kill_all()
        else:
            driver.kill()
        return ending


def _kill_workers(scene: Scene, fault: WorkersKilled) -> Ending:
    with scene.driver() as driver:
        if not _is_steady(scene, driver, fault.after_s):
            return _killed(driver, struck=False)
        held, workers, at = scene.batches, driver.workers, time.time()
        for worker in workers:
            worker.send(signal.SIGKILL)
        scene.wait(lambda: driver.ended is not None or scene.batches > held)
        broken = "" if driver.ended is None else f"ended without its workers: {driver.last_words}"
        if driver.ended is None and scene.batches <= held:
            broken = "did not go on without its workers"
        return Ending(driver.started_at, struck=bool(workers), struck_at=at, broken=broken)


def _kill_jvm(scene: Scene, fault: JvmKilled) -> Ending:
    with scene.driver() as driver:
        if not _is_steady(scene, driver, fault.after_s) or (jvm := driver.jvm) is None:
            return _killed(driver, struck=False)
        jvm.send(signal.SIGKILL)
        broken = _ends_saying(scene, driver, "DRIVER_LOST")
        return Ending(driver.started_at, broken=broken)


def _overtake(scene: Scene, fault: Overtaken) -> Ending:
    with scene.driver() as zombie:
        if not _is_steady(scene, zombie, fault.after_s):
            return _killed(zombie, struck=False)
        zombie.pause()
        with scene.driver() as refused:
            if broken := _ends_saying(scene, refused, "HOME_LOCKED"):
                return Ending(zombie.started_at, broken=broken)
        held, at = scene.batches, time.time()
        with scene.driver("--takeover") as other:
            enough = held + _MORE_BATCHES
            scene.wait(lambda: other.ended is not None or scene.batches >= enough)
            zombie.wake()
            if other.ended is not None:
                broken = f"did not take over: {other.last_words}"
                return Ending(zombie.started_at, struck_at=at, broken=broken)
            broken = _ends_saying(scene, zombie, "OVERTAKEN")
            return Ending(zombie.started_at, struck_at=at, broken=broken)


def _is_steady(scene: Scene, driver: Driver, after_s: float) -> bool:
    """Wait until the driver has written something, and a little longer."""
    held = scene.batches
    scene.wait(lambda: driver.ended is not None or scene.batches > held)
    scene.wait(lambda: driver.ended is not None, within_s=after_s)
    return driver.ended is None


def _ends_saying(scene: Scene, driver: Driver, code: str) -> str:
    if not scene.wait(lambda: driver.ended is not None, within_s=_ENDS_WITHIN_S):
        return f"did not end with {code}"
    if driver.ended == 0 or not driver.says(code):
        return f"ended with {driver.ended}, not with {code}: {driver.last_words}"
    return ""


def _killed(driver: Driver, *, struck: bool) -> Ending:
    """Tell a driver that was killed from one that missed the place, or ended by itself."""
    broken = ""
    if not struck and driver.ended is not None:
        broken = f"ended by itself with {driver.ended}: {driver.last_words}"
    return Ending(driver.started_at, struck=struck, broken=broken)

"""How many calls of each kind a driver makes in one undisturbed run, by its busiest thread."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from tests.chaos.driver import counter
from tests.chaos.fault import SWEPT

if TYPE_CHECKING:
    from tests.chaos.scene import Scene

_LINE = re.compile(r"^(\d+) +(\w+)\(", re.MULTILINE)


def count_calls(scene: Scene, *, for_s: float) -> dict[str, int]:
    """Run a driver for so long and count what it, its JVM and its workers do."""
    scene.feeder.feed()
    with scene.driver(prefix=counter(scene.trace, *SWEPT)) as driver:
        scene.wait(lambda: driver.ended is not None, within_s=for_s)
    return busiest(scene.trace.read_text(errors="replace"))


def busiest(trace: str) -> dict[str, int]:
    r"""Give, for each call, how often the thread made it that made it most.

    >>> busiest("7 fsync(3) = 0\n8  fsync(3) = 0\n7 fsync(4 <unfinished ...>\n")
    {'fsync': 2}
    """
    most: dict[str, int] = {}
    for (_, call), times in _by_thread(trace).items():
        most[call] = max(most.get(call, 0), times)
    return most


def held_back(trace: str, nth: int) -> int | None:
    r"""Find the first thread that has made its nth call; None if there is none yet.

    >>> held_back("7 fsync(3) = 0\n8  fsync(3) = 0\n7 fsync(4", 2)
    7
    """
    threads = (int(thread) for (thread, _), times in _by_thread(trace).items() if times >= nth)
    return next(threads, None)


def _by_thread(trace: str) -> Counter[tuple[str, str]]:
    return Counter(_LINE.findall(trace))

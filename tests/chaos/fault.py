"""What can be done to a driver: each kind of fault, and where it strikes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from millstream.crash import OF_STORES, POINTS
from millstream.model.dataset import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.plan import Query

Kind = Literal["point", "call", "moment", "worker", "jvm", "zombie"]

MEANING: dict[Kind, str] = {
    "point": "killed at a named point of the commit path",
    "call": "killed at a system call",
    "moment": "killed at a random moment",
    "worker": "Python workers killed alone",
    "jvm": "JVM killed alone",
    "zombie": "paused, overtaken, woken",
}

SWEPT = {"rename": 24, "fsync": 24, "linkat": 6, "unlink": 8, "mkdir": 16, "link": 1}
"""The calls that make something last, and how many of each are swept.

Spark renames what it writes to its checkpoints; delta-rs links a commit to its name and unlinks the
temporary file; Millstream links its lease, renames data files and forces them to disk. So many are
made by one thread of the examples within about three batches: `--count` counts them for an app.
"""

_BEFORE_BATCHES = ("home_taken", "table_taken")
_STEADY_AFTER = 1


@dataclass(frozen=True, slots=True)
class AtPoint:
    """Die at a named point: in the next batch of a query, or some batches later."""

    kind: ClassVar[Kind] = "point"
    point: str
    query: str = ""
    steady: bool = False

    def crash_at(self, held: int) -> str:
        """Say it as the driver's environment wants it, of a query that has `held` as last batch.

        >>> AtPoint("sink_commit", "paid", steady=True).crash_at(4)
        'sink_commit:paid:6'
        """
        if self.point in _BEFORE_BATCHES:
            return f"{self.point}:{self.query}".rstrip(":")
        return f"{self.point}:{self.query}:{held + 1 + (_STEADY_AFTER if self.steady else 0)}"

    def __str__(self) -> str:
        when = "steady" if self.steady else "first"
        return ":".join(part for part in (self.point, self.query, when) if part)


@dataclass(frozen=True, slots=True)
class AtCall:
    """Let the process that is first to make its nth call of a kind in one thread die there."""

    kind: ClassVar[Kind] = "call"
    call: str
    nth: int

    def __str__(self) -> str:
        return f"{self.call}:{self.nth}"


@dataclass(frozen=True, slots=True)
class AtMoment:
    """Kill the driver so long after its start: alone, or with all that it has started."""

    kind: ClassVar[Kind] = "moment"
    after_s: float
    whole: bool = False

    def __str__(self) -> str:
        return f"{'all' if self.whole else 'driver'}:{self.after_s:.2f}s"


@dataclass(frozen=True, slots=True)
class WorkersKilled:
    """Kill the Python workers so long after a batch; the driver must go on."""

    kind: ClassVar[Kind] = "worker"
    after_s: float

    def __str__(self) -> str:
        return f"workers:{self.after_s:.2f}s"


@dataclass(frozen=True, slots=True)
class JvmKilled:
    """Kill the JVM so long after a batch; the driver must end and say why."""

    kind: ClassVar[Kind] = "jvm"
    after_s: float

    def __str__(self) -> str:
        return f"jvm:{self.after_s:.2f}s"


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Pause the driver, refuse another, let it take over, wake the first: it must end at once."""

    kind: ClassVar[Kind] = "zombie"
    after_s: float

    def __str__(self) -> str:
        return f"zombie:{self.after_s:.2f}s"


Fault = AtPoint | AtCall | AtMoment | WorkersKilled | JvmKilled | Overtaken


def points_of(query: Query) -> Iterator[str]:
    """Name the points a query comes by in a batch, in this order."""
    updates = isinstance(query.dataset, Table) and query.dataset.mode == "update"
    skipped = {
        *_BEFORE_BATCHES,
        *OF_STORES,
        *(() if _has_quarantine(query) else ("quarantine_commit",)),
        # A recomputed table has no offsets, and a merge writes its files itself.
        *(("offsets_durable",) if query.kind == "recompute" else ()),
        *(("files_moved",) if updates else ()),
    }
    points = [point for point in POINTS if point not in skipped]
    if _has_quarantine(query) and "files_moved" in points:
        # Once the quarantine has the batch, the next files to be moved are the table's own.
        points.remove("files_moved")
        points.insert(points.index("quarantine_commit") + 1, "files_moved")
    yield from points


def _has_quarantine(query: Query) -> bool:
    if not isinstance(query.dataset, Table):
        return False
    expect = query.dataset.expect
    return bool(expect.rules) and expect.on_violation == "quarantine"

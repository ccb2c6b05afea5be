"""Returns of a model to an earlier version: requested, then placed in event time by a driver.

Each is a file of its own. A command makes it, and only the driver changes it: once, to record the
event time after which it counts.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from millstream.lake.durable import sync_folder, write_durably

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Rollback:
    """A model goes on from an earlier version."""

    number: int
    """How many there are up to this one."""
    to: str
    """The version."""
    asked_at: float
    """When, in seconds since 1970."""
    at_us: int | None = None
    """The event time after which it counts; None until a driver has placed it."""

    @property
    def to_us(self) -> int:
        """The version as an event time."""
        return moment_of(self.to)


def moment_of(version: str) -> int:
    """Return the event time that a version is named by.

    >>> moment_of("2026-01-01T12:00:00Z")
    1767268800000000
    """
    at = datetime.strptime(version, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return int(at.timestamp()) * 1_000_000


def read_rollbacks(folder: Path) -> tuple[Rollback, ...]:
    """Return those of a model, in the order in which they were asked for."""
    files = sorted(folder.glob("rollback-*.json")) if folder.exists() else ()
    return tuple(Rollback(**json.loads(file.read_text())) for file in files)


def ask_for_rollback(folder: Path, to: str) -> Rollback:
    """Ask that a model goes on from a version: the driver that runs does it, or the next one."""
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        asked = Rollback(len(read_rollbacks(folder)) + 1, to, time.time())
        written = folder / f".{os.getpid()}-{time.monotonic_ns()}"
        write_durably(written, json.dumps(asdict(asked)))
        try:
            # Unlike a rename, a link fails if another process was first.
            _file(folder, asked).hardlink_to(written)
        except FileExistsError:
            continue
        finally:
            written.unlink()
        sync_folder(folder)
        return asked


def place_rollback(folder: Path, asked: Rollback, at_us: int) -> Rollback:
    """Write down the event time after which a return counts."""
    placed = replace(asked, at_us=at_us)
    write_durably(_file(folder, asked), json.dumps(asdict(placed)))
    return placed


def _file(folder: Path, asked: Rollback) -> Path:
    return folder / f"rollback-{asked.number:06}.json"


def in_force(versions: list[str], rollbacks: tuple[Rollback, ...]) -> str | None:
    """Return which of a model's versions is in use, after the returns that were placed.

    Args:
        versions: From the oldest on.
        rollbacks: In their order.

    >>> first, second, third = (f"2026-01-01T12:0{minute}:00Z" for minute in range(3))
    >>> back = Rollback(1, first, 0.0, moment_of(second))
    >>> in_force([first, second], ()), in_force([first, second], (back,))
    ('2026-01-01T12:01:00Z', '2026-01-01T12:00:00Z')
    >>> in_force([first, second, third], (back,))
    '2026-01-01T12:02:00Z'
    """
    placed = tuple(one for one in rollbacks if one.at_us is not None)
    while versions and placed:
        last = placed[-1]
        if moment_of(versions[-1]) > (last.at_us or 0):
            break
        versions = [name for name in versions if name <= last.to]
        placed = tuple(one for one in placed[:-1] if (one.at_us or 0) < last.to_us)
    return versions[-1] if versions else None

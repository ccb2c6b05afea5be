"""Whether a home can be run: its driver and its checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint.health import examine
from millstream.doctor.diagnosis import Diagnosis
from millstream.errors import MillstreamError, listed
from millstream.lake.lease import holder_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.lake.home import Home


def look_at_home(home: Home, app: str) -> Iterator[Diagnosis]:
    """Check what is deployed in a home; nothing, if nothing has run there."""
    if not home.path.exists():
        return
    try:
        home.verify(app)
    except MillstreamError as error:
        yield Diagnosis.of("deployed", error)
        return
    yield driver(home)
    yield checkpoints(home)


def driver(home: Home) -> Diagnosis:
    """Check whether a driver holds the home."""
    if holder := holder_of(home):
        error = holder.fault(home)
        return Diagnosis("driver", "warn", error.what, error.fix)
    return Diagnosis("driver", "ok", "none runs")


def checkpoints(home: Home) -> Diagnosis:
    """Check for damage; of state files, only the sizes."""
    found = examine(home, deep=False)
    if damaged := [name for name, checkpoint in found.items() if checkpoint.damage]:
        fix = "`millstream checkpoint inspect APP` names the files, `… repair` repairs them"
        return Diagnosis("checkpoints", "bad", f"damaged: {listed(damaged)}", fix)
    return Diagnosis("checkpoints", "ok", f"{len(found)} sound")

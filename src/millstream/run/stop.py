"""Stopping the driver of a home from another process."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.lake.lease import holder_of

if TYPE_CHECKING:
    from datetime import timedelta

    from millstream.lake.home import Home
    from millstream.lake.lease import Holder

_LOOK_EVERY_S = 0.05


def stop_driver(home: Home, *, wait: timedelta) -> Holder | None:
    """Ask the driver of a home to finish its batch and stop, wait for it, and return its holder.

    Raises:
        DRIVER_ELSEWHERE: It runs on another machine.
        DRIVER_FOREIGN: It belongs to another user.
        DRIVER_STILL_RUNNING: It has not stopped in time.
    """
    holder = holder_of(home)
    if holder is None:
        return None
    if not holder.is_here:
        raise fault("DRIVER_ELSEWHERE", home=str(home.path), pid=holder.pid, host=holder.host)
    try:
        os.kill(holder.pid, signal.SIGTERM)
    except PermissionError as error:
        raise fault("DRIVER_FOREIGN", pid=holder.pid) from error
    except ProcessLookupError:
        return holder
    until = time.monotonic() + wait.total_seconds()
    while holder_of(home) == holder:
        if time.monotonic() > until:
            raise fault(
                "DRIVER_STILL_RUNNING", pid=holder.pid, waited=f"{wait.total_seconds():g} s"
            )
        time.sleep(_LOOK_EVERY_S)
    return holder

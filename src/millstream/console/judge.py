"""Objectives of an app without a driver, judged for as long as its console is open."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from millstream.alert.without_driver import judge_without_driver
from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.console.deployment import Deployment

_EVERY_S = 15.0
_ENDS_WITHIN_S = 2.0


@contextmanager
def judging(deployment: Deployment) -> Iterator[None]:
    """Judge now and then, in a thread; a running driver does it itself, and nothing is done."""
    is_over = threading.Event()
    thread = threading.Thread(
        target=_judge_until, args=(deployment, is_over), name="judge", daemon=True
    )
    if deployment.graph is not None:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        if deployment.graph is not None:
            thread.join(_ENDS_WITHIN_S)


def _judge_until(deployment: Deployment, is_over: threading.Event) -> None:
    assert deployment.graph is not None
    while not is_over.wait(_EVERY_S):
        # The home may be moved or repaired meanwhile; the page says so.
        with suppress(MillstreamError, OSError):
            judge_without_driver(deployment.graph, deployment.home)

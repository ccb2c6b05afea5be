"""Routes of state: which functions keep some, and what of a key."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Response

from millstream.console.body import field_of, read_body
from millstream.console.response import response, unanswered
from millstream.errors import fault
from millstream.sql.limits import over_limit
from millstream.views.kept import KeptView

if TYPE_CHECKING:
    from millstream.console.deployment import Deployment

_WITHIN_S, _WITHIN = 120, "2 minutes"
_MOST = 100
Body = Depends(read_body)


def routes(deployment: Deployment) -> APIRouter:
    """Return the routes."""
    router, one_at_a_time = APIRouter(prefix="/api"), threading.Lock()

    @router.api_route("/states", methods=["GET", "HEAD"])
    def states() -> Response:
        return response({"states": KeptView.all_of(deployment.home)})

    @router.post("/state")
    def state(body: dict[str, Any] = Body) -> Response:
        name, key = field_of(body, "name", str), field_of(body, "key", dict, {})
        texts = {str(column): str(value) for column, value in key.items()}
        asked = {"home": str(deployment.home.path), "name": name, "key": texts, "most": _MOST}
        if not one_at_a_time.acquire(blocking=False):
            raise fault("CONSOLE_BUSY", running=1)
        try:
            reply = _ask(asked)
        finally:
            one_at_a_time.release()
        if "fault" in reply:
            return unanswered(reply["fault"])
        return response({**reply, "is_cut": len(reply["rows"]) == _MOST})

    return router


def _ask(asked: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "millstream.console.state_child"]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise over_limit(_WITHIN, "--timeout of `millstream state`") from None
    if not done.stdout:
        raise fault("SQL_FAILED", cause=f"the process of Spark ended with {done.returncode}")
    return dict(json.loads(done.stdout.splitlines()[-1]))

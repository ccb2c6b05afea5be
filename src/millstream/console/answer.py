"""Answers: views and errors as JSON, and the status that HTTP has for each error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from millstream.errors import ClusterError
from millstream.views.shape import FaultView, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.errors import MillstreamError

_STATUS: Mapping[str, int] = {
    "LOOKUP_REFUSED": 400,
    "LOOKUP_VALUE": 400,
    "CONSOLE_TOKEN": 401,
    "CONSOLE_HOST": 403,
    "CONSOLE_ADDRESS": 404,
    "NOTHING_SERVED": 404,
    "NOT_SERVED": 404,
    "ROW_MISSING": 404,
    "UNKNOWN_DATASET": 404,
    "CONSOLE_READ_ONLY": 405,
    "UNEXPECTED": 500,
}
_HEADERS: Mapping[str, Mapping[str, str]] = {
    "CONSOLE_TOKEN": {"WWW-Authenticate": "Bearer"},
    "CONSOLE_READ_ONLY": {"Allow": "GET, HEAD"},
}
_UNAVAILABLE, _OURS = 503, 500
# What was true a moment ago may not be: nothing on the way is to keep an answer.
_NOT_KEPT = {"Cache-Control": "no-store"}


def answer(view: object) -> Response:
    """Answer with a view."""
    return _json(view, 200, {})


def refusal(error: MillstreamError) -> Response:
    """Answer with an error, as `--json` has it."""
    of_others = _UNAVAILABLE if isinstance(error, ClusterError) else _OURS
    status, headers = _STATUS.get(error.code, of_others), _HEADERS.get(error.code, {})
    return _json(FaultView.of(error), status, headers)


def _json(view: object, status: int, headers: Mapping[str, str]) -> Response:
    content = to_json(view) + "\n"
    return Response(content, status, {**_NOT_KEPT, **headers}, "application/json")

"""HTTP responses: views and errors as JSON, with the status of each error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from millstream.errors import ClusterError, CommandError
from millstream.views.json_text import FaultView, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.errors import MillstreamError

_STATUS: Mapping[str, int] = {
    "ARGUMENT_REFUSED": 400,
    "CONSOLE_BODY": 400,
    "LOOKUP_REFUSED": 400,
    "LOOKUP_VALUE": 400,
    "CONSOLE_TOKEN": 401,
    "CONSOLE_HOST": 403,
    "CONSOLE_ORIGIN": 403,
    "CONSOLE_ROLE": 403,
    "CONSOLE_ADDRESS": 404,
    "NOTHING_SERVED": 404,
    "NOT_SERVED": 404,
    "ROW_MISSING": 404,
    "UNKNOWN_ALERT": 404,
    "UNKNOWN_CODE": 404,
    "UNKNOWN_DATASET": 404,
    "UNKNOWN_NOTICE": 404,
    "UNKNOWN_STATE": 404,
    "CONSOLE_READ_ONLY": 405,
    "SQL_CANCELLED": 409,
    "CONSOLE_BUSY": 429,
    "UNEXPECTED": 500,
}
_HEADERS: Mapping[str, Mapping[str, str]] = {
    "CONSOLE_TOKEN": {"WWW-Authenticate": "Bearer"},
    "CONSOLE_BUSY": {"Retry-After": "5"},
    # The rest of the body is not read.
    "CONSOLE_BODY": {"Connection": "close"},
}
_UNANSWERED = 422
"""Of what a visitor asked, such as a query, that cannot be answered."""
_UNAVAILABLE, _OURS = 503, 500
# What was true a moment ago may not be: no proxy may cache an answer.
_NOT_KEPT = {"Cache-Control": "no-store"}


def response(view: object, headers: Mapping[str, str] | None = None) -> Response:
    """Return a view as a response."""
    return _json(view, 200, headers or {})


def error_response(error: MillstreamError, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as a response, as `--json` prints it."""
    status = _STATUS.get(error.code, _status_of_kind(error))
    return _json(FaultView.of(error), status, {**_HEADERS.get(error.code, {}), **(headers or {})})


def _status_of_kind(error: MillstreamError) -> int:
    """Return the status of an error that has none of its own, by who must act."""
    if isinstance(error, ClusterError):
        return _UNAVAILABLE
    return _UNANSWERED if isinstance(error, CommandError) else _OURS


def unanswered(fault: object) -> Response:
    """Return the fault of a query that another process has found."""
    return _json(fault, _UNANSWERED, {})


def _json(view: object, status: int, headers: Mapping[str, str]) -> Response:
    content = to_json(view) + "\n"
    return Response(content, status, {**_NOT_KEPT, **headers}, "application/json")

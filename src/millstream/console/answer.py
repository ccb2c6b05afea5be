"""Answers: views and errors as JSON, and the status that HTTP has for each error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from millstream.errors import (
    ClusterError,
    ConsoleAddressError,
    ConsoleHostError,
    ConsoleReadOnlyError,
    ConsoleTokenError,
    LookupRefusedError,
    LookupValueError,
    NothingServedError,
    NotServedError,
    RowMissingError,
    UnexpectedError,
    UnknownDatasetError,
)
from millstream.views.shape import FaultView, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.errors import MillstreamError

_STATUS: Mapping[type[MillstreamError], int] = {
    LookupRefusedError: 400,
    LookupValueError: 400,
    ConsoleTokenError: 401,
    ConsoleHostError: 403,
    ConsoleAddressError: 404,
    NothingServedError: 404,
    NotServedError: 404,
    RowMissingError: 404,
    UnknownDatasetError: 404,
    ConsoleReadOnlyError: 405,
    UnexpectedError: 500,
}
_HEADERS: Mapping[type[MillstreamError], Mapping[str, str]] = {
    ConsoleTokenError: {"WWW-Authenticate": "Bearer"},
    ConsoleReadOnlyError: {"Allow": "GET, HEAD"},
}
_UNAVAILABLE, _OURS = 503, 500
# What was true a moment ago may not be: nothing on the way is to keep an answer.
_NOT_KEPT = {"Cache-Control": "no-store"}


def answer(view: object) -> Response:
    """Answer with a view."""
    return _json(view, 200, {})


def refusal(error: MillstreamError) -> Response:
    """Answer with an error, as `--json` has it."""
    kind = type(error)
    of_others = _UNAVAILABLE if isinstance(error, ClusterError) else _OURS
    return _json(FaultView.of(error), _STATUS.get(kind, of_others), _HEADERS.get(kind, {}))


def _json(view: object, status: int, headers: Mapping[str, str]) -> Response:
    content = to_json(view) + "\n"
    return Response(content, status, {**_NOT_KEPT, **headers}, "application/json")

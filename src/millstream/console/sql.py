"""Routes of SQL: a query, its file, and what there is to ask."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Response
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from millstream.console.body import field_of, read_body
from millstream.console.response import response, unanswered
from millstream.errors import fault
from millstream.sql.catalogue import column_names

if TYPE_CHECKING:
    from millstream.console.deployment import Deployment
    from millstream.console.sql_process import SqlProcesses

_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
_LONGEST = 100_000
"""Characters of a query."""

Body = Depends(read_body)


def routes(deployment: Deployment, processes: SqlProcesses) -> APIRouter:
    """Return the routes of SQL."""
    router = APIRouter(prefix="/api")

    @router.post("/sql")
    def ask(body: dict[str, Any] = Body) -> Response:
        asked = {"sql": _query_of(body), "most": field_of(body, "most", int, processes.limits.rows)}
        return answered(processes, asked, field_of(body, "id", str, ""))

    @router.post("/sql/file")
    def download(body: dict[str, Any] = Body) -> Response:
        kind = field_of(body, "format", str)
        if kind not in _TYPES:
            expected = "csv or parquet"
            raise fault("ARGUMENT_REFUSED", option="format", value=kind, expected=expected)
        return _file_of(processes, _query_of(body), kind, field_of(body, "id", str, ""))

    @router.post("/sql/cancel")
    def cancel(body: dict[str, Any] = Body) -> Response:
        return response({"is_cancelled": processes.cancel(field_of(body, "id", str))})

    @router.api_route("/names", methods=["GET", "HEAD"])
    def names() -> Response:
        home = deployment.home
        return response({name: column_names(home, name) for name in home.tables})

    return router


def answered(processes: SqlProcesses, asked: dict[str, Any], id_: str = "") -> Response:
    """Run a query, and answer with its rows or with why it has none."""
    reply = processes.ask(asked, id_ or secrets.token_hex(8))
    return unanswered(reply["fault"]) if "fault" in reply else response(reply)


def _query_of(body: dict[str, Any]) -> str:
    text = field_of(body, "sql", str)
    if len(text) > _LONGEST:
        raise fault("CONSOLE_BODY", why=f"the query has more than {_LONGEST} characters")
    return text


def _file_of(processes: SqlProcesses, text: str, kind: str, id_: str) -> Response:
    folder = tempfile.TemporaryDirectory(prefix="millstream-download-")
    file = Path(folder.name) / f"answer.{kind}"
    try:
        asked = {"sql": text, "format": kind, "file": str(file)}
        reply = processes.ask(asked, id_ or secrets.token_hex(8))
        if "fault" in reply:
            folder.cleanup()
            return unanswered(reply["fault"])
    except BaseException:
        folder.cleanup()
        raise
    headers = {"Cache-Control": "no-store"}
    done = BackgroundTask(folder.cleanup)
    return FileResponse(file, 200, headers, _TYPES[kind], background=done, filename=file.name)

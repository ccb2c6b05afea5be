"""The server of the console: its port, and what becomes of whatever a request raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from millstream.console import (
    dataset,
    events,
    lookup,
    models,
    operate,
    page_files,
    past,
    sql,
    state,
)
from millstream.console.guard import Guard
from millstream.console.judge import judging
from millstream.console.key import AccessKeys, Role
from millstream.console.patience import ImpatientProtocol
from millstream.console.response import error_response, response
from millstream.console.shared import SharedAnswers
from millstream.console.sql_process import SqlLimits, SqlProcesses
from millstream.errors import MillstreamError, closest, fault
from millstream.model.graph import Graph
from millstream.observe.history import History
from millstream.serve.lookup import Lookups
from millstream.systems.http.listen import listen

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from millstream.console.deployment import Deployment

HOST = "127.0.0.1"
_KEPT_ALIVE_S = 60
_ENDS_WITHIN_S = 5
_MOST_CONNECTIONS = 256
_ADDRESSES = ("/api/served", "/api/get/NAME?COLUMN=VALUE", "/api/overview", "/api/dataset/NAME")
"""What programs ask for; the page has more."""
_METHOD_NOT_ALLOWED = 405


class ConsoleServer:
    """An app over HTTP; clients may connect as soon as it is made, and are answered by `serve`."""

    def __init__(
        self,
        deployment: Deployment,
        *,
        port: int,
        token: str,
        write_trace: Callable[[Exception], str],
        limits: SqlLimits | None = None,
    ) -> None:
        """Listen on a port.

        Raises:
            PORT_TAKEN: Something else does.
        """
        self._deployment = deployment
        self._listening = listen(HOST, port, "the console")
        self.keys = AccessKeys(token, self.port)
        self._lookups = Lookups()
        self._processes = SqlProcesses(deployment.home, limits or SqlLimits())
        self._history = History.read_only(deployment.home.history)
        self._changes = events.HomeWatch(deployment.home, lambda: self._server.should_exit)
        config = uvicorn.Config(
            Guard(self._routed(deployment, write_trace), keys=self.keys),
            lifespan="off",
            ws="none",
            http=ImpatientProtocol,
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_KEPT_ALIVE_S,
            timeout_graceful_shutdown=_ENDS_WITHIN_S,
        )
        self._server = uvicorn.Server(config)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listening.getsockname()[1])

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{HOST}:{self.port}/"

    def serve(self) -> None:
        """Answer until Ctrl-C, SIGTERM or `stop`."""
        try:
            with judging(self._deployment):
                self._server.run([self._listening])
        finally:
            self._listening.close()
            self._processes.close()
            self._lookups.close()
            self._history.close()

    def stop(self) -> None:
        """Make `serve` finish its open requests and return."""
        self._server.should_exit = True

    def _routed(self, deployment: Deployment, write_trace: Callable[[Exception], str]) -> FastAPI:
        routed = FastAPI(openapi_url=None, redirect_slashes=False)
        shared = SharedAnswers(self._changes.mark)
        graph = deployment.graph or Graph(deployment.name, ())
        for router in (
            page_files.routes(),
            lookup.routes(graph, self._lookups),
            dataset.routes(deployment, self._history, shared),
            past.routes(deployment, self._history, shared),
            dataset.row_routes(deployment, self._processes, shared),
            operate.routes(deployment, past.Audit(deployment.home), shared),
            models.routes(deployment, self._history, shared),
            sql.routes(deployment, self._processes),
            state.routes(deployment),
            events.routes(self._changes),
        ):
            routed.include_router(router)
        routed.add_api_route("/api/session", self._sign_in, methods=["POST"])
        routed.add_middleware(_Reported, write_trace=write_trace)
        routed.add_exception_handler(HTTPException, _no_such_address)
        routed.add_exception_handler(RequestValidationError, _wrong_parameters)
        return routed

    def _sign_in(self, request: Request) -> Response:
        """Set the cookie that stands for a token from now on."""
        role: Role = request.state.role
        self._processes.warm()
        return response({"role": role}, {"Set-Cookie": self.keys.cookie_of(role)})


async def _no_such_address(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == _METHOD_NOT_ALLOWED:
        allowed = error.headers or {}
        methods = allowed.get("allow", allowed.get("Allow", "GET, HEAD"))
        wrong = fault("CONSOLE_READ_ONLY", method=request.method, path=request.url.path)
        return error_response(wrong, {"Allow": methods})
    path = request.url.path
    known = ", ".join(_ADDRESSES)
    nearest = closest(path, _ADDRESSES)
    return error_response(fault("CONSOLE_ADDRESS", path=path, nearest=nearest, known=known))


async def _wrong_parameters(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    [first, *_rest] = error.errors()
    name = ".".join(str(part) for part in first["loc"][1:])
    return error_response(fault("CONSOLE_BODY", why=f"{name!r}: {first['msg'].lower()}"))


class _Reported:
    """Returns whatever a request raises as an error with a code."""

    def __init__(self, app: ASGIApp, *, write_trace: Callable[[Exception], str]) -> None:
        self._app, self._write_trace = app, write_trace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except MillstreamError as error:
            await error_response(error)(scope, receive, send)
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            unexpected = fault("UNEXPECTED", cause=cause, trace=self._write_trace(error))
            await error_response(unexpected)(scope, receive, send)

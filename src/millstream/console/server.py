"""The server of the console: its port, and what becomes of whatever a request raises."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from millstream.console import lookup
from millstream.console.answer import refusal
from millstream.console.guard import Guard
from millstream.errors import MillstreamError, closest, fault
from millstream.serve.lookup import Lookups

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from millstream.model.graph import Graph

HOST = "127.0.0.1"
_KEPT_ALIVE_S = 60
_ENDS_WITHIN_S = 5


class Console:
    """An app over HTTP; clients may connect as soon as it is made, and are answered by `serve`."""

    def __init__(
        self, graph: Graph, *, port: int, token: str, write_trace: Callable[[Exception], str]
    ) -> None:
        """Listen on a port.

        Raises:
            PORT_TAKEN: Something else does.
        """
        self._listening = _listen(port)
        self._lookups = Lookups()
        config = uvicorn.Config(
            Guard(_routed(graph, self._lookups, write_trace), token=token),
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEPT_ALIVE_S,
            timeout_graceful_shutdown=_ENDS_WITHIN_S,
        )
        self._server = uvicorn.Server(config)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{HOST}:{self._listening.getsockname()[1]}/"

    def serve(self) -> None:
        """Answer until Ctrl-C, SIGTERM or `stop`."""
        try:
            self._server.run([self._listening])
        finally:
            self._listening.close()
            self._lookups.close()

    def stop(self) -> None:
        """Have `serve` finish what is being answered and return."""
        self._server.should_exit = True


def new_token() -> str:
    """Draw a token that nobody can guess."""
    return secrets.token_urlsafe(24)


def _listen(port: int) -> socket.socket:
    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        address = f"{HOST}:{port}"
        raise fault(
            "PORT_TAKEN", listener="the console", address=address, why=str(error)
        ) from error
    # What is accepted inherits it. An answer is two packets, and without it the second waits until
    # the client has confirmed the first, which takes 40 ms; asyncio sets it for its own sockets.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _routed(graph: Graph, lookups: Lookups, write_trace: Callable[[Exception], str]) -> FastAPI:
    routed = FastAPI(openapi_url=None, redirect_slashes=False)
    routed.include_router(lookup.routes(graph, lookups))
    routed.add_middleware(_Told, write_trace=write_trace)

    @routed.exception_handler(HTTPException)
    async def lead_on(request: Request, _: HTTPException) -> Response:
        return refusal(
            fault(
                "CONSOLE_ADDRESS",
                path=request.url.path,
                nearest=closest(request.url.path, lookup.ADDRESSES),
                known=", ".join(lookup.ADDRESSES),
            )
        )

    return routed


class _Told:
    """Has whatever a request raises told as errors are told everywhere."""

    def __init__(self, app: ASGIApp, *, write_trace: Callable[[Exception], str]) -> None:
        self._app, self._write_trace = app, write_trace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except MillstreamError as error:
            await refusal(error)(scope, receive, send)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            unexpected = fault("UNEXPECTED", cause=told, trace=self._write_trace(error))
            await refusal(unexpected)(scope, receive, send)

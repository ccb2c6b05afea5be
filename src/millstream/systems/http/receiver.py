"""The receiver of posts: a post is answered when its records are landed."""

from __future__ import annotations

import asyncio
import json
import logging
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from millstream.errors import InboxClosedError
from millstream.systems.http.connection import Connection, Connections
from millstream.systems.http.post import (
    ClientGoneError,
    InFlight,
    Post,
    RefusedPostError,
    records_of,
    refused_for_now,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Mapping

    from millstream.landing.inbox import Inbox
    from millstream.systems.http.post import Receive
    from millstream.systems.http.source import Http

    Send = Callable[[Mapping[str, Any]], Awaitable[None]]

_LOOK_EVERY_S = 0.02
_ENDS_WITHIN_S = 2
_ACCEPTED = 64
"""Connections that are accepted at once: all need file descriptors before any can be closed."""
_BACKLOG = 1024
"""Connections that wait to be accepted; clients of more would try again after a second."""


def serve(http: Http, listening: socket.socket, inbox: Inbox) -> None:
    """Answer posts until the inbox is closed."""
    asyncio.run(_serve(http, listening, inbox))


async def _serve(http: Http, listening: socket.socket, inbox: Inbox) -> None:
    limits, receiver = http.limits, _Receiver(http, inbox)
    connections = Connections(limits.connections)
    config = uvicorn.Config(
        cast("Any", receiver.answer),
        http=cast("Any", partial(Connection, connections, limits.header_timeout.total_seconds())),
        interface="asgi3",
        lifespan="off",
        ws="none",
        log_config=None,
        log_level=logging.CRITICAL,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_ACCEPTED,
        timeout_keep_alive=cast("int", limits.idle_timeout.total_seconds()),
        timeout_graceful_shutdown=_ENDS_WITHIN_S,
    )
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve([listening]))
        while not server.started:
            await asyncio.sleep(_LOOK_EVERY_S)
        listening.listen(_BACKLOG)
        await receiver.watch()
        server.should_exit = True


class _Receiver:
    """What becomes of posts."""

    def __init__(self, http: Http, inbox: Inbox) -> None:
        self._http, self._inbox = http, inbox
        self._in_flight = InFlight(http.limits.bytes_in_flight)
        self._landings: dict[str, asyncio.Future[bool]] = {}
        """Whether a file of the inbox is landed, or the app stops; posts wait for these."""

    async def watch(self) -> None:
        """Wake the posts whose files are landed, until the inbox is closed."""
        while not self._inbox.is_closed:
            await asyncio.sleep(_LOOK_EVERY_S)
            for file in [file for file in self._landings if self._inbox.has_landed(file)]:
                self._landings.pop(file).set_result(True)
        for file, landing in self._landings.items():
            landing.set_result(self._inbox.has_landed(file))

    async def answer(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Land a post and answer it."""
        connection: Connection = scope["state"]["connection"]
        post = Post(self._http, scope, receive, self._in_flight)
        connection.begin()
        try:
            records = await self._land(post, connection)
            await _respond(send, HTTPStatus.OK, {"landed": records}, {})
        except RefusedPostError as refused:
            await post.discard()
            headers = {} if post.is_complete else {"Connection": "close"}
            await _respond(send, refused.status, {"error": refused.why}, headers | refused.headers)
        except ClientGoneError:
            return
        finally:
            post.release()
            connection.end()

    async def _land(self, post: Post, connection: Connection) -> int:
        """Return how many records of a post are landed.

        Raises:
            RefusedPostError: They are not, or may not be.
            ClientGoneError: The post is not complete.
        """
        if not connection.has_room:
            raise refused_for_now(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections are open")
        post.check()
        body = await post.body()
        connection.arrived()
        try:
            records, file = await asyncio.to_thread(self._put, body, post.kind)
        except InboxClosedError:
            raise _stops() from None
        if file and not await self._landing(file):
            raise _stops()
        return records

    def _put(self, body: bytes, kind: str) -> tuple[int, str]:
        """Put records into the inbox; return their number and the file they will be in."""
        records = records_of(body, kind, self._http.limits.post_records)
        file = self._inbox.try_offer(*records)
        if file is None:
            why = "too many records wait to be landed"
            wait_s = self._inbox.room_in_s
            raise refused_for_now(HTTPStatus.TOO_MANY_REQUESTS, why, wait_s)
        return len(records), file

    async def _landing(self, file: str) -> bool:
        """Wait for a file; return whether it is landed rather than given up on."""
        if self._inbox.is_closed:
            return False
        landing = self._landings.setdefault(file, asyncio.get_running_loop().create_future())
        return await asyncio.shield(landing)


def _stops() -> RefusedPostError:
    return refused_for_now(HTTPStatus.SERVICE_UNAVAILABLE, "the app stops")


async def _respond(
    send: Send, status: HTTPStatus, fields: Mapping[str, Any], headers: Mapping[str, str]
) -> None:
    body = json.dumps(fields).encode() + b"\n"
    sent = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    encoded = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": status.value, "headers": encoded})
    await send({"type": "http.response.body", "body": body})

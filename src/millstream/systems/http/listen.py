"""Ports of this machine that are listened on."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from millstream.errors import fault

if TYPE_CHECKING:
    from millstream.errors import Location


def listen(host: str, port: int, listener: str, at: Location | None = None) -> socket.socket:
    """Listen on a port, 0 for any that is free.

    Raises:
        PORT_TAKEN: Something else listens there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        address = f"{host}:{port}"
        raise fault(
            "PORT_TAKEN", at=at, listener=listener, address=address, why=str(error)
        ) from error
    # What is accepted inherits it. An answer is two packets, and without it the second waits until
    # the client has confirmed the first, which takes 40 ms; asyncio sets it for its own sockets.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening

"""A line to a server that can be cut, before or after the server hears what is said."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from millstream.testing.server import HOST

if TYPE_CHECKING:
    from collections.abc import Callable

_AT_A_TIME = 1 << 16
_ENDS_WITHIN_S = 10.0


class Proxy:
    """Passes bytes on to a server, until it is asked to cut the line."""

    def __init__(self, port: int, *, at: int = 0) -> None:
        self._to = port
        self._listening = socket.create_server((HOST, at))
        self.port: int = self._listening.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._one_at_a_time = threading.Lock()
        self._cuts: Callable[[bytes], bool] | None = None
        self._lines: list[socket.socket] = []
        self.cuts = 0

    def cut_reply_to(self, said: bytes) -> None:
        """Have the server hear something, once, and its answer lost with the line."""
        self.cut_reply_when(lambda heard: said in heard)

    def cut_reply_when(self, cuts: Callable[[bytes], bool]) -> None:
        """Have the answer to the first bytes lost of which something is true."""
        self._cuts = cuts

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        # One that only is closed listens on until the next client has come.
        _hang_up(self._listening)
        self._listening.close()
        self._accepting.join(_ENDS_WITHIN_S)
        for line in self._lines:
            _hang_up(line)
            line.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((HOST, self._to))
            except OSError:
                client.close()
                continue
            self._lines += [client, server]
            cut = threading.Event()
            for source, target in ((client, server), (server, client)):
                args = (source, target, client, cut)
                threading.Thread(target=self._pass_on, args=args, daemon=True).start()

    def _pass_on(
        self,
        source: socket.socket,
        target: socket.socket,
        client: socket.socket,
        cut: threading.Event,
    ) -> None:
        try:
            while some := source.recv(_AT_A_TIME):
                if source is client and self._is_cut_at(some):
                    cut.set()
                elif source is not client and cut.is_set():
                    # What the server answers comes when it has done what was asked.
                    self.cuts += 1
                    break
                target.sendall(some)
        except OSError:
            pass
        for line in (source, target):
            _hang_up(line)

    def _is_cut_at(self, said: bytes) -> bool:
        with self._one_at_a_time:
            if self._cuts is None or not self._cuts(said):
                return False
            self._cuts = None
            return True


def _hang_up(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)

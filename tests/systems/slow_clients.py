"""Clients that keep a receiver of posts waiting: `python -m tests.systems.slow_clients PORT COUNT`.

Each sends a byte a second, of its header or of its body; one that is cut off comes back after a
second. A line is printed when all have been connected.
"""

from __future__ import annotations

import asyncio
import sys

from millstream.testing.server import HOST

HEADER = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
PAUSE_S = 1.0
AT_ONCE = 100


class Crowd:
    """Slow clients of one port."""

    def __init__(self, port: int, count: int) -> None:
        self._port, self._count = port, count
        self._connected: set[int] = set()
        self._room = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Be slow until this process is ended."""
        await asyncio.gather(*map(self._client, range(self._count)))

    async def _client(self, number: int) -> None:
        while True:
            try:
                await self._post_slowly(number)
            except OSError:
                await asyncio.sleep(PAUSE_S)

    async def _post_slowly(self, number: int) -> None:
        async with self._room:
            _, writer = await asyncio.open_connection(HOST, self._port)
        self._note(number)
        rest = HEADER
        if number % 2:
            writer.write(HEADER)
            rest = b"x" * len(HEADER)
        try:
            for byte in rest:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(PAUSE_S)
        finally:
            writer.close()

    def _note(self, number: int) -> None:
        if len(self._connected) < self._count:
            self._connected.add(number)
            if len(self._connected) == self._count:
                print(self._count, flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(Crowd(int(sys.argv[1]), int(sys.argv[2])).run())

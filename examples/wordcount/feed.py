"""Send the lines of files to each client, over and over: a server to try the app with.

python examples/wordcount/feed.py examples/wordcount/README.md

`nc -lk 9999` is another server, which sends what you type.
"""

import argparse
import itertools
import socket
import time
from collections.abc import Iterable
from pathlib import Path


def send(server: socket.socket, lines: Iterable[str], *, pause_s: float) -> None:
    """Wait for a client, and send it lines until they end or it disconnects."""
    client, _ = server.accept()
    with client:
        for line in lines:
            try:
                client.sendall(f"{line}\n".encode())
            except ConnectionError:
                return
            time.sleep(pause_s)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--port", type=int, default=9999)
    parser.add_argument("--rate", type=float, default=20, help="lines a second")
    said = parser.parse_args()
    text = [line for file in said.files for line in file.read_text().splitlines()]
    with socket.create_server(("localhost", said.port)) as listening:
        while True:
            send(listening, itertools.cycle(text), pause_s=1 / said.rate)

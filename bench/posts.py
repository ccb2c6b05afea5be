"""How long a post to `ms.Http` takes while other clients keep the receiver waiting.

The receiver of a source is measured, not the landing: a record counts as landed as soon as its file
is on disk. Slow clients send a byte a second, and come back when they are cut off; they are a
process of low priority, since on other machines they would not take the receiver's time.
"""

from __future__ import annotations

import http.client
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import millstream as ms
from bench.stream import write_report
from millstream.landing.inbox import Inbox
from millstream.testing.server import HOST, free_ports

SLOW, POSTS = 1500, 300
WANTED_MS = 100


def posted(port: int) -> float:
    """Post one record over a connection of its own; return how long it took, in ms."""
    began = time.monotonic()
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    connection.request("POST", "/", body=b'{"id": 1}', headers={"Host": "localhost"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 200, answer.status
    return (time.monotonic() - began) * 1000


def measured(port: int) -> dict[str, Any]:
    """Post again and again."""
    taken = sorted(posted(port) for _ in range(POSTS))
    return {
        "median, ms": round(statistics.median(taken), 1),
        "99 of 100, ms": round(taken[POSTS * 99 // 100 - 1], 1),
        "longest, ms": round(taken[-1], 1),
    }


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
        place, [port] = Path(temporary), free_ports(1)
        inbox = Inbox(
            place, epoch=1, landed=lambda: max((f.name for f in place.glob("*.txt")), default="")
        )
        receiver = threading.Thread(target=ms.Http(port).receive, args=(inbox,))
        receiver.start()
        time.sleep(1)
        report: dict[str, Any] = {"alone": measured(port)}
        crowd = subprocess.Popen(
            ["nice", sys.executable, "-m", "tests.systems.slow_clients", str(port), str(SLOW)],
            stdout=subprocess.PIPE,
        )
        try:
            assert crowd.stdout is not None
            crowd.stdout.readline()
            report[f"beside {SLOW:,} slow clients".replace(",", " ")] = measured(port)
        finally:
            crowd.kill()
            crowd.wait()
        inbox.close()
        receiver.join()
    write_report("posts", report | {"posts": POSTS, "wanted below, ms": WANTED_MS})


if __name__ == "__main__":
    main()

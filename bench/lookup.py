"""One row by its key from real stores: by hand, by app.get, and over HTTP; no JVM."""

from __future__ import annotations

import http.client
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import psycopg
import redis

from bench.stores import KEYS, batch, ours
from millstream.loading import load
from millstream.serve.sink import readable_sinks
from millstream.testing.postgres import PostgresServer
from millstream.testing.redis import RedisServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.app import App

    LookUp = Callable[[str], object]

HERE = Path(__file__).parent
WARM, ASKED, SEED = 200, 5_000, 7
APP = """\
import os
import millstream as ms
app = ms.App("bench")
@app.source
def views(): return ms.Memory("page STRING, n BIGINT, mean DOUBLE, last TIMESTAMP")
@app.serve(to=ms.SQLite(os.environ["BENCH_SQLITE"], table="pages", key="page"), mode="update")
def in_sqlite(views): return views
@app.serve(to=ms.Postgres(os.environ["BENCH_POSTGRES"], table="pages", key="page"), mode="update")
def in_postgres(views): return views
@app.serve(to=ms.Redis(os.environ["BENCH_REDIS"], prefix="pages", key="page"), mode="update")
def in_redis(views): return views
"""


@contextmanager
def console(folder: Path) -> Iterator[Callable[[str, str], dict[str, Any]]]:
    """Start the console as a process; give a look-up over one connection that is kept open."""
    command = [sys.executable, "-m", "millstream.cli", "console", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reported = json.loads(process.stdout.readline())
        line = http.client.HTTPConnection(urlsplit(reported["url"]).netloc)
        headers = {"Authorization": f"Bearer {reported['token']}"}

        def look_up(dataset: str, page: str) -> dict[str, Any]:
            line.request("GET", f"/api/get/{dataset}?{urlencode({'page': page})}", headers=headers)
            answer = line.getresponse()
            row: dict[str, Any] = json.loads(answer.read())
            assert answer.status == 200, row
            return row

        try:
            yield look_up
        finally:
            line.close()
            process.terminate()


def by_get(app: App, name: str, page: str) -> object:
    return app.get(name, page=page)


def by_hand(path: str, dsn: str, url: str) -> dict[str, LookUp]:
    """Look up as the clients of the stores do."""
    file, server = sqlite3.connect(path), psycopg.connect(dsn, autocommit=True)
    cache: Any = redis.Redis.from_url(url)
    query = "SELECT page, n, mean, last FROM pages WHERE page = {}"
    return {
        "SQLite": lambda page: file.execute(query.format("?"), (page,)).fetchone(),
        "Postgres": lambda page: server.execute(query.format("%s"), (page,)).fetchone(),
        "Redis": lambda page: cache.hgetall(f"pages:{page}"),
    }


def milliseconds(look_up: LookUp) -> dict[str, float]:
    """How long random keys take, one after the other."""
    dice, taken = random.Random(SEED), []
    for number in range(WARM + ASKED):
        page = f"/page/{dice.randrange(KEYS)}"
        began = time.perf_counter()
        row = look_up(page)
        if number >= WARM:
            taken.append((time.perf_counter() - began) * 1000)
        assert row
    cuts = statistics.quantiles(taken, n=100)
    return {"p50": round(cuts[49], 3), "p99": round(cuts[98], 3)}


def main() -> None:
    report: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    report |= {"keys": KEYS, "look-ups": ASKED, "unit": "ms"}
    with (
        PostgresServer() as server,
        RedisServer() as cache,
        tempfile.TemporaryDirectory() as folder,
    ):
        path = f"{folder}/bench.db"
        os.environ |= {"BENCH_SQLITE": path, "BENCH_POSTGRES": server.dsn}
        os.environ["BENCH_REDIS"] = cache.url
        (Path(folder) / "app.py").write_text(APP)
        app = load(f"{folder}/app.py")
        for sink in readable_sinks(app.graph).values():
            ours(sink)(0, batch(0))
        hands = by_hand(path, server.dsn, cache.url)
        with console(Path(folder)) as over_http:
            for store, hand in hands.items():
                name = f"in_{store.lower()}"
                ways: dict[str, LookUp] = {
                    "by hand": hand,
                    "app.get": partial(by_get, app, name),
                    "HTTP": partial(over_http, name),
                }
                report[store] = {way: milliseconds(look_up) for way, look_up in ways.items()}
                print(store, report[store], flush=True)
    (HERE / "results" / "lookup.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()

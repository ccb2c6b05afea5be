"""A new windowed and a new stateful table over ten million landed rows: memory, time, answers.

    python -m bench.catchup --place FOLDER --do land
    python -m bench.catchup --place FOLDER --do steady
    python -m bench.catchup --place FOLDER --do catch-up

`land` lands the rows; `steady` measures the memory of the same app over two million other rows of
the same keys, when it has read them all and new rows come; `catch-up` adds the two tables to what
is landed, and compares their answers with those of DuckDB over the landed rows. Each takes some
minutes. The heap of the JVM is 2 GB: it takes what it may before it is collected. The last one
writes `bench/results/catchup.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from deltalake import DeltaTable
from pyspark.sql import functions as F

import millstream as ms
from bench.memory import resident_by_kind
from millstream.lake.home import Home
from millstream.lake.log import facts_of
from millstream.observe.history import History

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

RESULTS = Path(__file__).parent / "results"
ROWS, BEFORE_STEADY, FILE_ROWS = 10_000_000, 2_000_000, 100_000
USERS, EVERY = 100_000, 20
STEADY_RATE, STEADY_S, WARM_S = 5_000, 90, 30
WITHIN_S = 460.0
HEAP = "2g"
SETTLED_S = 10.0
"""After the last rows, the watermark closes more windows."""
WANTED = 1.5
TABLES = ("per_minute", "reached")
SCHEMA = "user BIGINT, at TIMESTAMP, price BIGINT"
MADE = """
  COPY (SELECT (hash(i) % {users})::BIGINT AS "user",
               make_timestamptz((1767225600000000 + i * 10000)::BIGINT) AS at,
               (hash(i + 7) % 100)::BIGINT AS price
        FROM range({first}, {first} + {rows}) t(i))
  TO '{path}' (FORMAT parquet)
"""


@ms.stateful(key="user", state="n BIGINT", emits="user BIGINT, n BIGINT")
def reached_rows(
    user: int,
    rows: tuple[Any, ...],
    state: Any,
    timer: ms.Timer,  # noqa: ARG001
) -> Iterator[tuple[int, int]]:
    """Say each time that a user has so many rows more."""
    before, state.n = state.n or 0, (state.n or 0) + len(rows)
    for times in range(before // EVERY + 1, state.n // EVERY + 1):
        yield user, times * EVERY


def app_of(place: str) -> ms.App:
    """Declare the app; each file is landed as a batch."""
    app = ms.App("catchup", home=Path(place) / "home")

    @app.source(event_time="at", watermark="1 minute")
    def orders() -> ms.Files:
        folder = Path(place) / "in"
        one = {"maxFilesPerTrigger": 1}
        return ms.Files(str(folder), format="parquet", schema=SCHEMA, options=one)

    @app.table
    def per_minute(orders: DataFrame) -> DataFrame:
        per = orders.groupBy(F.window("at", "1 minute"))
        return per.agg(F.count(F.lit(1)).alias("n"), F.sum("price").alias("price"))

    @app.table
    def reached(orders: DataFrame) -> DataFrame:
        return reached_rows(orders)

    return app


def put(place: Path, first: int, rows: int) -> None:
    """Put one file of rows into the folder of the source."""
    folder = place / "in"
    folder.mkdir(parents=True, exist_ok=True)
    draft, path = folder / f".{first:012d}", folder / f"{first:012d}.parquet"
    with closing(duckdb.connect(config={"threads": 1})) as made:
        made.execute(MADE.format(users=USERS, first=first, rows=rows, path=draft))
    draft.rename(path)


def land(place: Path, rows: int) -> None:
    """Land rows; no table reads them."""
    for first in range(0, rows, FILE_ROWS):
        put(place, first, FILE_ROWS)
    app_of(str(place)).run(once=True, select=["orders"], master="local[2]")
    print("landed", facts_of(Home.at(place / "home").table("orders")).totals, flush=True)


class Run:
    """A run by the command line, with the memory of its processes and what it shows."""

    def __init__(self, place: Path) -> None:
        (place / "millstream.toml").write_text(
            f'[profile.default.spark]\n"spark.driver.memory" = "{HEAP}"\n'
        )
        (place / "app.py").write_text(
            f"from bench.catchup import app_of\n\napp = app_of({str(place)!r})\n"
        )
        self.place, self.home = place, Home.at(place / "home")
        self.began = datetime.now(UTC)
        words = ["run", str(place / "app.py"), "--no-console", "--master", "local[2]"]
        root = str(Path(__file__).parent.parent)
        path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "millstream.cli", *words],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        self.lines: list[str] = []
        self._reading = threading.Thread(target=self._read)
        self._reading.start()
        self.memory: list[tuple[float, dict[str, float]]] = []

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip())
            print(line, end="", flush=True)

    @property
    def elapsed_s(self) -> float:
        return (datetime.now(UTC) - self.began).total_seconds()

    def look(self) -> None:
        """Measure memory once."""
        time.sleep(0.25)
        if self._process.poll() is not None:
            sys.exit("the run has ended by itself")
        self.memory.append((self.elapsed_s, resident_by_kind(self._process.pid)))

    def has_read_all(self) -> bool:
        """Whether both tables have read all that is landed."""
        with History.read_only(self.home.history) as history:
            lasts = history.lasts()
        landed = facts_of(self.home.table("orders")).totals.get("ok", 0)
        read = [lasts[n].read.get("orders", 0) if n in lasts else 0 for n in TABLES]
        return min(read) >= landed

    def stop(self) -> None:
        """Stop as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)
        if self._process.wait():
            sys.exit(f"the run has failed: {self.lines[-5:]}")
        self._reading.join()

    def peak_mib(self, since_s: float = 0.0) -> dict[str, float]:
        """Return the most of each kind, and of all at once."""
        seen = [kinds for at, kinds in self.memory if at >= since_s]
        found = {kind: max(kinds[kind] for kinds in seen) for kind in seen[0]}
        return found | {"all": max(sum(kinds.values()) for kinds in seen)}

    def batches(self) -> dict[str, dict[str, float]]:
        """Say how many batches each table has had, and how long and large they were."""
        found = {}
        with History.read_only(self.home.history) as history:
            for name in TABLES:
                seconds = [
                    (b.duration_ms or 0) / 1000 for b in history.batches(name, since=self.began)
                ]
                found[name] = {"batches": len(seconds), "longest_s": round(max(seconds), 1)}
        return found


def steady(place: Path) -> dict[str, Any]:
    """Measure the memory of the app when it has read all, and rows keep coming."""
    land(place, BEFORE_STEADY)
    app_of(str(place)).run(once=True, master="local[2]")
    run, first = Run(place), BEFORE_STEADY
    ready_s: float | None = None
    while ready_s is None or run.elapsed_s < ready_s + WARM_S + STEADY_S:
        run.look()
        if ready_s is None and any("orders" in line for line in run.lines[3:]):
            ready_s = run.elapsed_s
        due = BEFORE_STEADY + run.elapsed_s * STEADY_RATE
        if first < due:
            put(place, first, STEADY_RATE)
            first += STEADY_RATE
    run.stop()
    return {
        "rate": STEADY_RATE,
        "heap": HEAP,
        "mib": run.peak_mib(ready_s),
        "batches": run.batches(),
    }


def catch_up(place: Path) -> dict[str, Any]:
    """Add the tables to what is landed; measure until they have read all."""
    run = Run(place)
    while not run.has_read_all():
        run.look()
        if run.elapsed_s > WITHIN_S:
            run.stop()
            sys.exit("not done in time; call it again to go on")
    seconds = run.elapsed_s
    while run.elapsed_s < seconds + SETTLED_S:
        run.look()
    run.stop()
    shown = [found[0] for line in run.lines if (found := re.search(r"behind .*? rate", line))]
    return {
        "rows": facts_of(run.home.table("orders")).totals["ok"],
        "seconds": round(seconds),
        "mib": run.peak_mib(),
        "batches": run.batches(),
        "shown": [shown[0], shown[len(shown) // 2], shown[-1]] if shown else [],
        "equal to DuckDB": answers(run.home),
    }


def answers(home: Home) -> dict[str, bool]:
    """Compare the tables with DuckDB over the landed rows."""

    def files(name: str) -> str:
        return str(["/" + uri.split("://")[-1].lstrip("/") for uri in _uris(home, name)])

    with closing(duckdb.connect()) as rows:
        rows.execute("SET TimeZone = 'UTC'")
        # After the watermark, a minute before the last row, windows are open and rows wait.
        [[differing, windows]] = rows.execute(
            f"""
            WITH mine AS (
              SELECT "window".start AS minute, n, price FROM read_parquet({files("per_minute")})
            ), last AS (SELECT max("at") - INTERVAL 1 MINUTE AS moment FROM {landed(files)}),
            theirs AS (
              SELECT date_trunc('minute', "at") AS minute, count(*) AS n,
                     sum(price)::BIGINT AS price
              FROM {landed(files)} GROUP BY 1
              HAVING date_trunc('minute', "at") + INTERVAL 1 MINUTE <= (SELECT moment FROM last)
            )
            SELECT (SELECT count(*) FROM (
                      (FROM mine EXCEPT ALL FROM theirs) UNION ALL
                      (FROM theirs EXCEPT ALL FROM mine))),
                   (SELECT count(*) FROM theirs)
            """
        ).fetchall()
        [[wrong, users]] = rows.execute(
            f"""
            WITH mine AS (SELECT "user", n FROM read_parquet({files("reached")})),
            last AS (SELECT max("at") - INTERVAL 1 MINUTE AS moment FROM {landed(files)}),
            counted AS (
              SELECT "user", count(*) AS n FROM {landed(files)}
              WHERE "at" <= (SELECT moment FROM last) GROUP BY 1
            ),
            theirs AS (
              SELECT "user", unnest(range({EVERY}, n + 1, {EVERY})) AS n FROM counted
            )
            SELECT (SELECT count(*) FROM (
                      (FROM mine EXCEPT ALL FROM theirs) UNION ALL
                      (FROM theirs EXCEPT ALL FROM mine))),
                   (SELECT count(*) FROM theirs)
            """
        ).fetchall()
    print(f"{windows:,} windows, {differing:,} differ; {users:,} rows of users, {wrong:,} differ")
    return {"per_minute": windows > 0 == differing, "reached": users > 0 == wrong}


def landed(files: Any) -> str:
    return f"read_parquet({files('orders')}, hive_partitioning = false)"


def _uris(home: Home, name: str) -> Sequence[str]:
    return DeltaTable(str(home.table(name))).file_uris()


def main() -> None:
    """Do one of the three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", type=Path, required=True)
    parser.add_argument("--do", choices=["land", "steady", "catch-up"], required=True)
    parser.add_argument("--rows", type=int, default=ROWS)
    typed = parser.parse_args()
    place, kept = typed.place.resolve(), typed.place.resolve() / "steady.json"
    if typed.do == "land":
        land(place / "caught-up", typed.rows)
    elif typed.do == "steady":
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(steady(place / "steady")))
        print(kept.read_text())
    else:
        known, found = json.loads(kept.read_text()), catch_up(place / "caught-up")
        ratio = round(found["mib"]["all"] / known["mib"]["all"], 2)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        report = {"at": at, "steady": known, "catch-up": found, "memory, ratio": ratio}
        report["wanted at most"] = WANTED
        print(json.dumps(report, indent=1))
        if typed.rows == ROWS:
            (RESULTS / "catchup.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""An app over thousands of small batches, maintained and not: what grows, and what stays.

    python -m bench.soak --minutes 25
    python -m bench.soak --minutes 25 --only maintained

runs it twice, each for that time, or one of both, and writes `bench/results/soak.json` and
`soak.svg`: batch time, memory, files and bytes in the last tenth of the run against those in the
second tenth, how long `status` and `query` take in both, and what a year of it comes to. Versions
are kept for a minute and landed rows for five, so that what happens to an ordinary app in months
happens here in minutes. The heap of the JVM is 1 GB, as on a small machine: a larger one is not
collected as a whole in this time, and looks as if it grew.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

import millstream as ms
from bench.memory import resident_by_kind
from bench.plot import Chart, write_svg
from millstream.lake.log import facts_of
from millstream.lake.maintenance import read_maintained, sizes_of
from millstream.loading import load
from millstream.model.dataset import VERDICTS

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from millstream.lake.home import Home
    from millstream.run.application import ApplicationRun

RESULTS = Path(__file__).parent / "results"
RATE, USERS, TENTHS = 20, 50, 10
SAMPLE_EVERY_S = 5.0
HEAP = "1g"
BATCH_GROWTH, MEMORY_GROWTH = 1.15, 1.1
"""What is wanted at most, of the last tenth against the second."""
SAME = 1.25
"""Files, bytes beside the rows, and the time of a command may vary by that from look to look."""
A_DAY_S = 86_400


def order(dice: random.Random, number: int) -> Mapping[str, Any]:
    return {"user": f"user-{dice.randrange(USERS)}", "price": dice.randrange(100), "n": number}


@ms.stateful(key="user", state="n BIGINT", emits="user STRING, n BIGINT")
def counted_rows(
    user: str,
    rows: tuple[Any, ...],
    state: Any,
    timer: ms.Timer,  # noqa: ARG001
) -> Iterator[tuple[str, int]]:
    state.n = (state.n or 0) + len(rows)
    yield user, state.n


def app_of(place: Path) -> ms.App:
    """Declare one of each: landing, append, update, stateful, complete and a store."""
    app = ms.App("soak", home=place / "home", keep_versions="1 minute")
    schema = "user STRING, at TIMESTAMP, price BIGINT, n BIGINT"

    @app.source(event_time="at", watermark="10 seconds", keep="5 minutes")
    def orders() -> ms.Generator:
        return ms.Generator(schema, rate=RATE, event_time="at", make=order)

    @app.table(expect={"paid": "price > 0"})
    def clean(orders: DataFrame) -> DataFrame:
        return orders.select("user", "at", "price")

    @app.table(mode="update", key=["user"])
    def spent(clean: DataFrame) -> DataFrame:
        return clean.groupBy("user").agg({"price": "sum"}).withColumnRenamed("sum(price)", "spent")

    @app.table(mode="complete")
    def total(spent: DataFrame) -> DataFrame:
        return spent.agg({"spent": "sum"}).withColumnRenamed("sum(spent)", "spent")

    @app.table
    def counted(clean: DataFrame) -> DataFrame:
        return counted_rows(clean)

    @app.serve(to=ms.SQLite(str(place / "store.db"), table="clean"))
    def served(clean: DataFrame) -> DataFrame:
        return clean

    return app


@dataclass
class Course:
    """What is seen while the app runs."""

    home: Home
    length_s: float
    begun: float = field(default_factory=time.monotonic)
    batches: dict[str, list[tuple[float, int, float]]] = field(default_factory=dict)
    """By query: when each batch was seen, its number, and how long it took, in seconds."""
    samples: list[dict[str, float]] = field(default_factory=list)
    commands: list[dict[str, float]] = field(default_factory=list)
    looking: list[threading.Thread] = field(default_factory=list)

    def watch(self, running: ApplicationRun) -> None:
        """Note new batches, and now and then the sizes; time commands in two of the tenths."""
        for supervised in running.queries:
            self._note(supervised.query.name, supervised.running.progress)
        elapsed = time.monotonic() - self.begun
        if elapsed >= len(self.samples) * SAMPLE_EVERY_S:
            self.samples.append({"at_s": round(elapsed, 1), **self._sizes()})
        due = [self.length_s * 1.5 / TENTHS, self.length_s * (1 - 0.5 / TENTHS)]
        if len(self.looking) < len(due) and elapsed >= due[len(self.looking)]:
            self.looking.append(threading.Thread(target=self._time_commands))
            self.looking[-1].start()
        if elapsed > self.length_s:
            running.ask_to_stop()

    def _note(self, name: str, progress: Mapping[str, Any] | None) -> None:
        seen = self.batches.setdefault(name, [])
        if progress is None or not progress.get("numInputRows"):
            return
        if not seen or progress["batchId"] > seen[-1][1]:
            took = progress["durationMs"]["triggerExecution"] / 1000
            seen.append((time.monotonic() - self.begun, progress["batchId"], took))

    def _sizes(self) -> dict[str, float]:
        sizes = [sizes_of(self.home.table(name)) for name in self.home.tables]
        whole = sum(f.stat().st_size for f in _files(self.home.path))
        return {
            "files": sum(size.files for size in sizes),
            "files on disk": sum(1 for _ in _files(self.home.path)),
            "log files": sum(size.log_files for size in sizes),
            "rows, MB": sum(size.size for size in sizes) / 1e6,
            "beside the rows, MB": (whole - sum(size.size for size in sizes)) / 1e6,
            "history, MB": sum(f.stat().st_size for f in self.home.history.parent.glob("history*"))
            / 1e6,
            **{f"{kind}, MiB": mib for kind, mib in resident_by_kind(os.getpid()).items()},
        }

    def _time_commands(self) -> None:
        home = str(self.home.path)
        query = "SELECT count(*) AS n FROM clean"
        self.commands.append(
            {
                "status": _timed("status", "--home", home),
                "query": _timed("query", query, "--home", home),
            }
        )


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file():
                yield path


def soak(place: Path, *, length_s: float, maintain: bool) -> dict[str, Any]:
    """Run the app once; return what was seen."""
    profile, code = place / "millstream.toml", place / "app.py"
    profile.write_text(f'[profile.default.spark]\n"spark.driver.memory" = "{HEAP}"\n')
    place_text = f"Path({str(place)!r})"
    code.write_text(
        f"from pathlib import Path\nfrom bench.soak import app_of\n\napp = app_of({place_text})\n"
    )
    app = load(str(code))
    running = app.open({"master": "local[2]", "maintain": maintain})
    course = Course(running.home, length_s)
    running.serve(lambda: course.watch(running))
    running.raise_if_stopped_for_good()
    for look in course.looking:
        look.join()
    app.run(once=True, master="local[2]", maintain=maintain)
    batches = {name: [took for *_, took in seen] for name, seen in course.batches.items()}
    found = {
        "maintained": maintain,
        "minutes": round(length_s / 60, 1),
        "heap": HEAP,
        "rows": _rows(running.home, place / "store.db"),
        "done": {n: asdict(read_maintained(running.home, n)) for n in running.home.tables},
        "batches": {name: len(seen) for name, seen in batches.items()},
        "batch_s": {name: _tenths(took) for name, took in batches.items()},
        "sizes": {
            name: _tenths([sample[name] for sample in course.samples])
            for name in course.samples[0]
            if name != "at_s"
        },
        "commands": course.commands,
    }
    found["a year"] = _year(found, course)
    found["holds"] = _holds(found)
    found["lines"] = _lines(course)
    return found


def _holds(found: Mapping[str, Any]) -> dict[str, bool]:
    """Judge what was seen."""
    times, sizes = found["batch_s"].values(), found["sizes"]
    growth = {name: size.get("last_to_second", 0.0) for name, size in sizes.items()}
    kinds = [name for name in growth if name.endswith("MiB")]
    bounded = ("files", "files on disk", "log files", "beside the rows, MB")
    begin, end = found["commands"][0], found["commands"][-1]
    rows = found["rows"]
    return {
        "2,000 batches": sum(found["batches"].values()) >= 2_000,
        "batch time": all(t.get("last_to_second", 0.0) <= BATCH_GROWTH for t in times),
        **{kind: growth[kind] <= MEMORY_GROWTH for kind in kinds},
        **{name: growth[name] <= SAME for name in bounded},
        **{name: 0 < end[name] <= begin[name] * SAME for name in begin},
        "sums are equal": rows["sum of clean"] == rows["sum of spent"] == rows["sum of total"],
    }


def _year(found: Mapping[str, Any], course: Course) -> dict[str, Any]:
    """Say what a year comes to, by what was added between the second tenth and the end."""
    tenth = len(course.samples) // TENTHS
    first, last = course.samples[tenth], course.samples[-1]
    seconds = last["at_s"] - first["at_s"]
    names = ("files on disk", "log files", "rows, MB", "beside the rows, MB", "history, MB")
    added = {n: (last[n] - first[n]) / seconds * A_DAY_S * 365 for n in names} if seconds else {}
    batches = sum(found["batches"].values()) / course.length_s
    return {
        "batches": round(batches * A_DAY_S * 365),
        "rows landed": RATE * A_DAY_S * 365,
        "added": {name: round(value) for name, value in added.items()},
    }


def _lines(course: Course) -> dict[str, list[tuple[float, float]]]:
    """Return what is drawn: of batches, the median of each hundredth of the time."""
    part = course.length_s / 100
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, seen in course.batches.items():
        parts: dict[int, list[float]] = {}
        for at, _, took in seen:
            parts.setdefault(int(at / part), []).append(took)
        lines[name] = [(round(n * part), round(median(t), 3)) for n, t in sorted(parts.items())]
    for name in course.samples[0]:
        if name != "at_s":
            lines[name] = [(round(s["at_s"]), round(s[name], 2)) for s in course.samples]
    return lines


def _rows(home: Home, store: Path) -> dict[str, int]:
    """Count the rows of each table, and add up what should be equal."""
    tables = {name: DeltaTable(str(home.table(name))).to_pyarrow_table() for name in home.tables}
    rows = {name: table.num_rows for name, table in tables.items()}
    with closing(sqlite3.connect(store)) as served:
        rows["in the store"] = served.execute("SELECT count(*) FROM clean").fetchone()[0]
    rows["landed"] = sum(facts_of(home.table("orders")).totals.get(v, 0) for v in VERDICTS)
    for name, column in ("clean", "price"), ("spent", "spent"), ("total", "spent"):
        rows[f"sum of {name}"] = sum(int(n or 0) for n in tables[name].column(column).to_pylist())
    return rows


def _tenths(seen: Sequence[float]) -> dict[str, float]:
    """Give the median of the second and of the last tenth."""
    size = len(seen) // TENTHS
    if not size:
        return {}
    second, last = median(seen[size : 2 * size]), median(seen[-size:])
    return {
        "second_tenth": round(second, 3),
        "last_tenth": round(last, 3),
        "last_to_second": round(last / second, 3) if second else 0.0,
        "p95": round(sorted(seen[size:])[int(0.95 * len(seen[size:]))], 3),
    }


def _timed(*typed: str) -> float:
    """Return how long a command takes, at best of three; -1 if it fails."""
    times = []
    for _ in range(3):
        begun = time.monotonic()
        command = [sys.executable, "-m", "millstream.cli", *typed]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return -1.0
        times.append(time.monotonic() - begun)
    return round(min(times), 2)


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Draw batch times, memory, files and bytes of each run."""
    charts = []
    for name, found in results.items():
        lines, queries = found["lines"], found["batches"]
        charts += [
            Chart(f"{name}: seconds of a batch", {n: lines[n] for n in queries}),
            Chart(f"{name}: MiB in memory", {n: v for n, v in lines.items() if "MiB" in n}),
            Chart(f"{name}: files", {n: lines[n] for n in ("files", "files on disk", "log files")}),
            Chart(f"{name}: MB on disk", {n: v for n, v in lines.items() if n.endswith("MB")}),
        ]
    write_svg(path, "An app over thousands of small batches", charts)


def main() -> None:
    """Run it with maintenance and without, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=25.0, help="of each run")
    parser.add_argument("--only", choices=["maintained", "left"])
    parser.add_argument("--one", choices=["maintained", "left"], help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, default=RESULTS / "soak.json")
    typed = parser.parse_args()
    if typed.one:
        with tempfile.TemporaryDirectory() as place:
            maintain = typed.one == "maintained"
            found = soak(Path(place), length_s=typed.minutes * 60, maintain=maintain)
        typed.json.write_text(json.dumps(found))
        return
    known = json.loads(typed.json.read_text()) if typed.only and typed.json.exists() else {}
    for one in [typed.only] if typed.only else ["maintained", "left"]:
        with tempfile.TemporaryDirectory() as folder:
            into = Path(folder) / "found.json"
            words = ["--one", one, "--minutes", str(typed.minutes), "--json", str(into)]
            subprocess.run([sys.executable, "-m", "bench.soak", *words], check=True)
            known[one] = json.loads(into.read_text())
        print(json.dumps({n: v for n, v in known[one].items() if n != "lines"}, indent=1))
    typed.json.write_text(json.dumps(known, indent=1) + "\n")
    draw(known, typed.json.with_suffix(".svg"))


if __name__ == "__main__":
    main()

"""Commands that need no Spark, as whole processes: how long until they have answered."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench.process import timed
from millstream.lake.delta import FencedTable
from millstream.lake.home import Home

HERE = Path(__file__).parent
DATASETS, SQL, BATCHES, RUNS = 100, 20, 3, 9
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
PROGRAM = ("-m", "millstream.cli")
REFERENCES: dict[str, tuple[str, ...]] = {
    "python alone": ("-c", "pass"),
    "import typer alone": ("-c", "import typer"),
    "import pyspark.sql alone": ("-c", "import pyspark.sql"),
}
COMMANDS: dict[tuple[str, ...], float] = {
    ("--help",): 0.3,
    ("graph",): 0.5,
    ("graph", "--format", "svg"): 0.5,
    ("status",): 0.5,
    ("show", "t50"): 0.5,
    ("stop",): 0.5,
    ("ledger",): 0.5,
}


def app() -> str:
    """An app of many datasets: a source, tables in Python, tables in SQL."""
    head = (
        "import millstream as ms\n"
        "from pyspark.sql import DataFrame, functions as F\n"
        'app = ms.App("big")\n'
        '@app.source(event_time="at", watermark="1 minute")\n'
        'def t0() -> ms.Generator: return ms.Generator("id BIGINT, at TIMESTAMP", event_time="at")'
    )
    python = [
        f'@app.table\ndef t{n}(t{n // 3}: DataFrame) -> DataFrame: return t{n // 3}.where("id")'
        for n in range(1, DATASETS - SQL)
    ]
    sql = [f'app.sql("t{n}", "SELECT id FROM t{n // 3}")' for n in range(DATASETS - SQL, DATASETS)]
    return "\n".join([head, *python, *sql]) + "\n"


def deploy(place: Path) -> None:
    """Leave a home as a run would."""
    (place / "app.py").write_text(app())
    home = Home.at(place / ".millstream" / "big")
    home.prepare("big", sources=["t0"])
    for number in range(DATASETS):
        name = f"t{number}"
        FencedTable.create(home.table(name), schema=SCHEMA)
        table = FencedTable(home.table(name), name=name, epoch=1)
        for batch in range(BATCHES):
            facts = replace(table.facts, query_id="q", batch=batch)
            table.append([], facts.plus({"input": 10, "ok": 10, "written": 10}))


def measure(words: tuple[str, ...], place: Path) -> tuple[float, float]:
    return timed(*words, compiled=place / "compiled", place=place)


def main() -> None:
    report: dict[str, object] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "datasets": DATASETS,
        "load before": round(os.getloadavg()[0], 1),
    }
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
        place = Path(temporary)
        os.environ["MILLSTREAM_CACHE"] = str(place / "cache")
        deploy(place)
        for what, words in REFERENCES.items():
            report[what] = reported([measure(words, place) for _ in range(RUNS)], wanted=None)
            print(what, report[what], flush=True)
        first = measure((*PROGRAM, "graph"), place)
        report["graph, the first time (SQL is parsed)"] = reported([first], wanted=None)
        for words, wanted in COMMANDS.items():
            runs = [measure((*PROGRAM, *words), place) for _ in range(RUNS)]
            report[" ".join(words)] = reported(runs, wanted=wanted)
            print(" ".join(words), report[" ".join(words)], flush=True)
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "verbs.json").write_text(json.dumps(report, indent=2) + "\n")


def reported(runs: list[tuple[float, float]], *, wanted: float | None) -> dict[str, float | None]:
    return {
        "median, s": round(statistics.median(took for took, _ in runs), 3),
        "least, s": round(min(took for took, _ in runs), 3),
        "processor, s": round(statistics.median(used for _, used in runs), 3),
        "processor at least, s": round(min(used for _, used in runs), 3),
        "wanted below": wanted,
    }


if __name__ == "__main__":
    main()

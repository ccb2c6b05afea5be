"""`millstream query` against DuckDB alone on the same files, both as whole processes."""

from __future__ import annotations

import json
import statistics
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from bench.process import timed
from millstream.lake.home import Home

HERE = Path(__file__).parent
ROWS, FILES, RUNS = 3_000_000, 6, 15
GROUPED = "SELECT device, count(*) AS n, sum(value) AS total, avg(value) AS mean, max(moment) AS last FROM {} GROUP BY device ORDER BY device"  # noqa: E501
ALONE = """
import sys, duckdb
with duckdb.connect() as connection:
    connection.execute("SET TimeZone = 'UTC'")
    rows = connection.execute(sys.argv[1]).fetchall()
print(len(rows))
"""


def make(home: Home, name: str, rows: int, files: int) -> None:
    home.prepare("bench", sources=[])
    for number in range(files):
        ids = range(number * rows // files, (number + 1) * rows // files)
        table = pa.table(
            {
                "device": pa.array([f"device-{i * 7919 % 1000:04d}" for i in ids]),
                "value": pa.array([i % 997 / 10 for i in ids], pa.float64()),
                "moment": pa.array(
                    [1_700_000_000_000_000 + i for i in ids], pa.timestamp("us", tz="UTC")
                ),
            }
        )
        write_deltalake(str(home.table(name)), table, mode="append")


def compare(home: Home, name: str) -> dict[str, float]:
    """Time both in turn, so that both meet the same load."""
    listed = ", ".join(f"'{file}'" for file in DeltaTable(str(home.table(name))).file_uris())
    words = ["-m", "millstream.cli", "query"]
    commands = {
        "ours": [*words, GROUPED.format(name), "--home", str(home.path), "--json"],
        "DuckDB alone": ["-c", ALONE, GROUPED.format(f"read_parquet([{listed}])")],
    }
    taken: dict[str, list[float]] = {side: [] for side in commands}
    for _ in range(RUNS + 1):
        for side, command in commands.items():
            taken[side].append(timed(*command, compiled=home.path / "compiled")[0])
    ours, alone = (statistics.median(taken[side][1:]) for side in commands)
    return {
        "ours, s": round(ours, 2),
        "DuckDB alone, s": round(alone, 2),
        "ratio": round(ours / alone, 2),
    }


def main() -> None:
    report: dict[str, object] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
        home = Home.at(Path(temporary) / "home")
        make(home, "small", 1_000, 1)
        make(home, "large", ROWS, FILES)
        for name, rows in (("small", 1_000), ("large", ROWS)):
            report[f"{rows} rows grouped"] = compare(home, name)
            print(rows, report[f"{rows} rows grouped"], flush=True)
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "query.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()

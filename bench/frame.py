"""The frame against plain PySpark: start-up, time per batch, throughput; reported as ratios."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.data import put
from bench.frame_times import WAYS

HERE = Path(__file__).parent
SMALL_ROWS, SMALL_BATCHES = 1_000, 8
LARGE_ROWS, LARGE_FILES = 250_000, 4


def child(side: str, *words: str) -> list[str]:
    return [sys.executable, "-m", f"bench.frame_{side}", *words]


def silver_rows(home: Path) -> int:
    """Rows committed to the table so far, from the log alone."""
    log = home / "tables" / "silver" / "_delta_log"
    rows = 0
    for commit in sorted(log.glob("*.json")) if log.exists() else ():
        for line in commit.read_text().splitlines():
            add = json.loads(line).get("add")
            if add:
                rows += json.loads(add["stats"])["numRecords"]
    return rows


def wait_for(home: Path, rows: int) -> None:
    deadline = time.monotonic() + 180
    while silver_rows(home) < rows:
        if time.monotonic() > deadline:
            raise TimeoutError(home)
        time.sleep(0.01)


def small_batches(side: str, place: Path) -> tuple[float, float]:
    """Seconds from process start to the first row, and per small batch after that."""
    folder, home = place / "in", place / "home"
    folder.mkdir(parents=True)
    put(folder, 0, SMALL_ROWS)
    expected = SMALL_ROWS - 1
    began = time.monotonic()
    process = subprocess.Popen(
        child(side, "serve", str(folder), str(home)),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(home, expected)
        first = time.monotonic() - began
        steady = []
        for number in range(1, SMALL_BATCHES + 1):
            time.sleep(0.3)
            began = time.monotonic()
            put(folder, number, SMALL_ROWS)
            expected += SMALL_ROWS - 1
            wait_for(home, expected)
            steady.append(time.monotonic() - began)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return first, statistics.median(steady[2:])


def throughput(side: str, what: str, folder: Path, home: Path) -> float:
    rows = LARGE_ROWS * LARGE_FILES
    words = child(side, what, str(folder), str(home), str(rows))
    return float(
        subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[-1]
    )


def times() -> dict[str, object]:
    """Landed rows a second of event times in several ways, beside a plain TIMESTAMP column."""
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as place:
        words = [sys.executable, "-m", "bench.frame_times", place]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    rates = json.loads(done.stdout.splitlines()[-1])
    plain = rates["plain"]
    return {
        f"event time, {way.name}, rows/s": {
            "ours": round(rates[way.name], 2),
            "plain TIMESTAMP": round(plain, 2),
            "ratio": round(rates[way.name] / plain, 2),
            "wanted at least": way.wanted,
        }
        for way in WAYS[1:]
    }


def main() -> None:
    report: dict[str, object] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    if sys.argv[1:] == ["times"]:
        report = json.loads((HERE / "results" / "frame.json").read_text())
        write(report | times())
        return
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
        place = Path(temporary)
        small = {side: small_batches(side, place / side) for side in ("plain", "ours")}
        for index, what in enumerate(("start-up, s", "small batch, s")):
            ours, plain = small["ours"][index], small["plain"][index]
            report[what] = shown(ours, plain, plain / ours, wanted=2.0)
            print(what, report[what], flush=True)
        folder = place / "large"
        folder.mkdir()
        for number in range(LARGE_FILES):
            put(folder, number, LARGE_ROWS)
        for what, wanted in (("landed", 0.85), ("live", 0.95)):
            plain = throughput("plain", what, folder, place / f"plain-{what}")
            ours = throughput("ours", what, folder, place / f"ours-{what}")
            report[f"{what} ETL, rows/s"] = shown(ours, plain, ours / plain, wanted=wanted)
            print(what, report[f"{what} ETL, rows/s"], flush=True)
    write(report | times())


def write(report: dict[str, object]) -> None:
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "frame.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


def shown(ours: float, plain: float, ratio: float, *, wanted: float) -> dict[str, float]:
    return {
        "ours": round(ours, 2),
        "plain PySpark": round(plain, 2),
        "ratio": round(ratio, 2),
        "wanted at least": wanted,
    }


if __name__ == "__main__":
    main()

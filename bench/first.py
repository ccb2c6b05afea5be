"""The first run: from `millstream new` to a row on screen, against a console app by hand."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
RUNS = 3
MILLSTREAM = (sys.executable, "-m", "millstream.cli")
PLAIN = (sys.executable, str(HERE / "first_plain.py"))
LANDED = re.compile(r"^[\d:]{8}  orders +batch ")
ANSWERED = re.compile(r"^[\d:]{8}  sales +batch ")
PRINTED = re.compile(r"^\|(apple|bread|cheese|honey|tea) *\|")


def until(words: tuple[str, ...], place: Path, *signs: re.Pattern[str]) -> list[float]:
    """Seconds from the start of a process until it has printed each of these, in this order."""
    began = time.monotonic()
    found: list[float] = []
    process = subprocess.Popen(
        words,
        cwd=place,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if signs[len(found)].search(line):
                found.append(time.monotonic() - began)
                if len(found) == len(signs):
                    return found
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    raise RuntimeError(words)


def ours(place: Path) -> tuple[float, float]:
    """Seconds to the first landed rows on screen, and to the first answer."""
    began = time.monotonic()
    subprocess.run((*MILLSTREAM, "new", "shop"), cwd=place, check=True, capture_output=True)
    made = time.monotonic() - began
    landed, answered = until((*MILLSTREAM, "run"), place / "shop", LANDED, ANSWERED)
    return made + landed, made + answered


def plain(place: Path) -> float:
    """Seconds to the first answer that the console sink prints."""
    [printed] = until(PLAIN, place, PRINTED)
    return printed


def main() -> None:
    runs, peers = [], []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory(prefix="millstream-bench-") as temporary:
            peers.append(plain(Path(temporary)))
            runs.append(ours(Path(temporary)))
            print("landed, answered:", runs[-1], "plain PySpark:", peers[-1], flush=True)
    landed, answered = (statistics.median(run[mark] for run in runs) for mark in (0, 1))
    peer = statistics.median(peers)
    report = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "runs": RUNS,
        "load": round(os.getloadavg()[0], 1),
        "first rows landed, s": round(landed, 1),
        "first answer, s": {
            "ours": round(answered, 1),
            "plain PySpark": round(peer, 1),
            "ratio": round(peer / answered, 2),
        },
    }
    (HERE / "results" / "first.json").write_text(json.dumps(report, indent=2) + "\n")
    print(report)


if __name__ == "__main__":
    main()

"""How long proofs take: a scripted test with a crash, and random runs of a windowed count.

python -m bench.proof
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

import millstream as ms
from millstream.lake.home import Home
from millstream.spark.session import open_session, stop_session
from millstream.testing import Script, assert_prefix_consistent
from millstream.testing.quick_settings import QUICK

if TYPE_CHECKING:
    from typing import Literal

    from pyspark.sql import DataFrame, SparkSession

    Mode = Literal["append", "update"]

HERE = Path(__file__).parent
MODES: tuple[Mode, ...] = ("update", "append")
SCRIPTS, WARM_UP, RUNS = 20, 5, 100
AT_MOST_S = {"scripted test": 2, f"{RUNS} random runs": 180}
ROWS = [
    {"at": f"12:{second // 60:02d}:{second % 60:02d}", "user": "ab"[second % 2], "page": "/"}
    for second in range(0, 300, 23)
]


def visits(mode: Mode) -> ms.App:
    app = ms.App("visits")

    @app.source(event_time="at", watermark="10 minutes")
    def clicks() -> ms.Memory:
        return ms.Memory("user STRING, at TIMESTAMP, page STRING")

    @app.table(mode=mode, key=("user", "window") if mode == "update" else ())
    def per_minute(clicks: DataFrame) -> DataFrame:
        window = F.window("at", "1 minute")
        return clicks.groupBy("user", window).agg(F.count("*").alias("clicks"))

    return app


def scripted(spark: SparkSession, mode: Mode) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        with Script(visits(mode), Home.at(folder), spark) as s:
            s.send("clicks", at="12:00:03", user="ann", page="/")
            s.batch()
            s.send("clicks", at="11:40:00", user="bob", page="/")
            s.crash(after="sink_commit")
            s.restart()
            s.advance("30 minutes")
            s.drain()
            counted = s.table("per_minute").rows("user", "clicks")
            assert counted == ([("ann", 1)] if mode == "update" else [])
            assert s.verdicts("clicks") == {"ok": 1, "late": 1}
        return time.monotonic() - began


def main() -> None:
    report: dict[str, object] = {"at": datetime.now(UTC).isoformat(timespec="seconds")}
    report |= {"wanted at most, s": AT_MOST_S, "load before": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory() as logs:
        spark = open_session("proof", master="local[2]", conf=QUICK, log_dir=Path(logs))
        for mode in MODES:
            taken = [scripted(spark, mode) for _ in range(WARM_UP + SCRIPTS)][WARM_UP:]
            reported = {"median": statistics.median(taken), "least": min(taken), "most": max(taken)}
            report[f"scripted test, {mode}, s"] = {n: round(s, 2) for n, s in reported.items()}
            print(report[f"scripted test, {mode}, s"], flush=True)
        began = time.monotonic()
        assert_prefix_consistent(visits("append"), ROWS, runs=RUNS, seed=1, spark=spark)
        report[f"{RUNS} random runs, s"] = round(time.monotonic() - began)
        stop_session(spark)
    print(json.dumps(report, indent=2), flush=True)
    (HERE / "results" / "proof.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()

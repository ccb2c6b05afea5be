"""The application in Millstream: landing and one table, or one table over a live source."""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import TYPE_CHECKING

import millstream as ms
from bench.data import DDL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def make(folder: str, *, live: bool) -> ms.App:
    app = ms.App("bench")

    @app.source(event_time="at", watermark="10 minutes", live=live)
    def bronze() -> ms.Files:
        return ms.Files(folder, schema=DDL)

    @app.table
    def silver(bronze: DataFrame) -> DataFrame:
        return bronze.where("celsius BETWEEN -60 AND 80")

    return app


def serve(folder: str, home: str) -> None:
    """Run until killed; the caller watches the table."""
    make(folder, live=False).run(home=home)


def throughput(folder: str, home: str, rows: int, *, live: bool) -> None:
    """Print rows a second of the third to fifth run in one process: what a long run sees."""
    rates = []
    for attempt in range(5):
        app = make(folder, live=live)
        running = app.open({"home": f"{home}-{attempt}", "once": True, "fail_fast": True})
        began = time.monotonic()
        running.serve()
        running.raise_if_stopped_for_good()
        rates.append(rows / (time.monotonic() - began))
    print(statistics.median(rates[2:]))


if __name__ == "__main__":
    what, folder, home = sys.argv[1:4]
    if what == "serve":
        serve(folder, home)
    else:
        throughput(folder, home, int(sys.argv[4]), live=what == "live")
        sys.stdout.flush()
        os._exit(0)

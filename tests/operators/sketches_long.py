"""Sketches and samples on many random streams: bounds at their rate, and batch = stream = replay.

python -m tests.operators.sketches_long --streams 2000 --runs 200 --seed 1 \
  --json bench/results/sketches.json

Runs are added to those that the file has.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from tests.operators.sketches import (
    Visit,
    few_visits,
    frame_of,
    merged,
    site,
    summed_up,
    visits,
    wrong,
)

from millstream.settings import resolve_master
from millstream.spark.session import open_session
from millstream.testing.course import arrivals_of
from millstream.testing.property import prove

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

_AT_A_TIME = 200
_RUNS = 3
PROMISED = {"distinct": 0.05, "quantiles": 0.01, "ranks": 0.01}
"""How often a bound may fail."""


def bounds(spark: SparkSession, streams: int, seed: int) -> dict[str, Any]:
    """Count the bounds of streams, and of what is merged of them, that do not hold."""
    faults, asked = Counter[str](), Counter[str]()

    def count(found: Iterable[Any], rows_of: Callable[[int], list[Visit]]) -> None:
        for row in found:
            nonlocal faults
            faults += wrong(row, rows_of(row.part))
            points = len(row.duration.quantiles)
            asked.update({"distinct": 1, "quantiles": points, "ranks": points})

    for first in range(0, streams, _AT_A_TIME):
        rows = visits(min(_AT_A_TIME, streams - first), seed + first)
        of: defaultdict[int, list[Visit]] = defaultdict(list)
        for row in rows:
            of[row[0]].append(row)
        each = summed_up(frame_of(spark, rows), "stream").withColumnRenamed("stream", "part")
        kept = each.cache()
        count(kept.collect(), lambda part, of=of: of[part])  # type: ignore[misc]
        tens = merged(kept.withColumn("part", F.floor(F.col("part") / 10)), "part").collect()
        count(
            tens,
            lambda part, of=of: [one for n in range(10) for one in of[part * 10 + n]],  # type: ignore[misc]
        )
        kept.unpersist()
    return {
        name: {
            "asked": asked[name],
            "failed": faults[name],
            "share": round(faults[name] / asked[name], 4),
            "promised": PROMISED[name],
        }
        for name in PROMISED
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    spark = open_session("sketches", master=resolve_master(None, code=None).value)
    known = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    if given.streams:
        began = time.monotonic()
        report = bounds(spark, given.streams, given.seed)
        seconds = round(time.monotonic() - began)
        known["bounds"] = {
            "streams": given.streams,
            "seed": given.seed,
            "seconds": seconds,
        } | report
        print(json.dumps(report), flush=True)  # noqa: T201
        _store(given.json, known)
    done, app = 0, site()
    while done < given.runs:
        began, seed = time.monotonic(), given.seed + done
        arrivals = arrivals_of(app.graph, few_visits(random.Random(seed)))
        proof = prove(app, arrivals, spark, runs=min(_RUNS, given.runs - done), seed=seed)
        done += proof.runs
        before = known.get("runs", {"runs": 0, "seconds": 0, "happened": {}})
        happened = Counter(proof.happened) + Counter(before["happened"])
        known["runs"] = {
            "runs": before["runs"] + proof.runs,
            "seconds": before["seconds"] + round(time.monotonic() - began),
            "happened": dict(sorted(happened.items())),
        }
        _store(given.json, known)
        print(f"{done} runs held", flush=True)  # noqa: T201


def _store(file: Path | None, known: dict[str, Any]) -> None:
    if file:
        file.write_text(json.dumps(known, indent=2) + "\n")


if __name__ == "__main__":
    main()

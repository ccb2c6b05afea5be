"""Models: rows a second learnt and scored, by River alone, by hand in foreachBatch, and by ours."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType
from river import forest, linear_model, metrics, preprocessing, tree
from sklearn.linear_model import LogisticRegression

import millstream as ms
from bench.stream import rate_in_all, run, session, stream_of, write_batches, write_report
from millstream.declare.dataset import model_of
from millstream.errors import Location
from millstream.learn.learner import Task
from millstream.learn.pickled import canonical_bytes, made_with
from millstream.learn.rows import learnt
from millstream.learn.score import Chosen, scored
from millstream.learn.scoring import Aside, Versioned
from millstream.operators.build_context import BuildContext, calling
from millstream.spark.session import stop_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

KEYS, BATCHES, PASSES = 50, 4, 3
"""Ours and River alone take turns, as many passes each."""
LEARNERS: dict[str, tuple[int, Callable[[], Any]]] = {
    "logistic regression": (40_000, lambda: scaled(linear_model.LogisticRegression())),
    "Hoeffding tree": (20_000, lambda: scaled(tree.HoeffdingTreeClassifier(grace_period=50))),
    "forest of three trees": (4_000, lambda: forest.ARFClassifier(n_models=3, seed=1)),
}
"""Each with how many rows a batch has."""
TO_SCORE = 2_000_000
FEATURES = ("a", "b", "c", "d", "e")
START_US = 1_767_225_600_000_000
DAY_US = 86_400_000_000
AT = Location("bench", 1)


def scaled(last: Any) -> Any:
    made: Any = preprocessing.StandardScaler
    return made() | last


def table(dice: np.random.Generator, count: int, first: int) -> pa.Table:
    """Make up rows of many keys: the label follows the sum of the features."""
    x = dice.normal(size=(count, len(FEATURES)))
    times = START_US + (first + np.arange(count)) * 1000
    columns: dict[str, Any] = {
        "k": dice.integers(0, KEYS, count),
        "at": pa.array(times, pa.timestamp("us", tz="UTC")),
        **dict(zip(FEATURES, x.T, strict=True)),
        "y": x.sum(axis=1) + dice.normal(size=count) > 0,
    }
    return pa.table(columns)


def tables(rows: int) -> Iterator[pa.Table]:
    """Yield batches, the first of which warms up, and then a row that closes the last one."""
    dice = np.random.default_rng(1)
    for batch in range(BATCHES + 1):
        yield table(dice, rows, batch * rows)
    yield table(dice, 1, (BATCHES + 1) * rows + 60_000)


def by_river(
    rows: list[dict[str, Any]], models: dict[int, tuple[Any, Any]], make: Callable[[], Any]
) -> list[Any]:
    """River's own loop, with a model for each key."""
    said = []
    for row in rows:
        key, y = row.pop("k"), row.pop("y")
        del row["at"]
        if key not in models:
            models[key] = make(), metrics.Accuracy()  # type: ignore[no-untyped-call]
        model, metric = models[key]
        prediction = model.predict_one(row)
        metric.update(y, prediction)
        model.learn_one(row, y)
        said.append(prediction)
    return said


def river_alone(files: Path, make: Callable[[], Any]) -> tuple[float, float]:
    """Learn the files in one process; return rows a second and of the processor, but the first."""
    models: dict[int, tuple[Any, Any]] = {}
    names = sorted(files.glob("*.parquet"))
    by_river(pq.read_table(names[0]).to_pylist(), models, make)
    began, used = time.perf_counter(), time.process_time()
    count = sum(len(by_river(pq.read_table(name).to_pylist(), models, make)) for name in names[1:])
    return count / (time.perf_counter() - began), count / (time.process_time() - used)


def by_hand(spark: SparkSession, files: Path, checkpoint: Path, make: Callable[[], Any]) -> float:
    """Learn in foreachBatch, as one would write it: the driver collects each batch."""
    models: dict[int, tuple[Any, Any]] = {}
    took: list[tuple[int, float]] = []

    def learn(batch: DataFrame, _: int) -> None:
        began = time.perf_counter()
        rows: Any = batch.orderBy("at").toPandas()
        said = by_river(rows.to_dict("records"), models, make)
        spark.createDataFrame([(one,) for one in said], "p BOOLEAN").write.format("noop").mode(
            "append"
        ).save()
        took.append((len(said), time.perf_counter() - began))

    stream = stream_of(spark, files).writeStream.foreachBatch(learn)
    query = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(n for n, _ in took[1:]) / sum(seconds for _, seconds in took[1:])


def ours(
    spark: SparkSession, files: Path, checkpoint: Path, make: Callable[[], Any], *, key: bool = True
) -> float:
    """Learn as an app does; its answers are hashed and go nowhere."""
    model = model_of(
        lambda rows: rows,
        {
            "name": "m",
            "learner": make,
            "label": "y",
            "features": FEATURES,
            "key": ["k"] if key else [],
            "every": "1 day",
            "window": 100,
        },
    )
    rows = stream_of(spark, files).withWatermark("at", "0 seconds")
    with calling(BuildContext()):
        answers = learnt(model, rows)
    return rate_in_all(run(answers, checkpoint)[1:])


def merged(spark: SparkSession, files: Path, checkpoint: Path) -> float:
    """Learn one model of everybody by sums: a slice is about a batch."""
    context = BuildContext()
    model = model_of(
        lambda rows: rows,
        {
            "name": "m",
            "learner": ms.learn.LogisticRegression(),
            "label": "y",
            "features": FEATURES,
            "every": "10 seconds",
        },
    )
    with calling(context):
        rows = stream_of(spark, files).withWatermark("at", "0 seconds")
        answers = learnt(model, rows)
    [complete] = context.notes.completing

    def write(batch: DataFrame, _: int) -> None:
        complete(batch).write.format("noop").mode("append").save()

    writer = answers.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    took = [(p.numInputRows, p.durationMs["triggerExecution"] / 1000) for p in query.recentProgress]
    return sum(n for n, _ in took[1:]) / sum(seconds for _, seconds in took[1:])


def scoring(spark: SparkSession, place: Path) -> dict[str, float]:
    """Score many rows with linear models; return rows a second, each way."""
    dice, trained = np.random.default_rng(5), LEARNERS["logistic regression"][1]()
    sample = table(dice, 5000, 0).to_pylist()
    for row in sample:
        trained.learn_one({name: row[name] for name in FEATURES}, row["y"])
    fitted = LogisticRegression().fit(
        [[row[name] for name in FEATURES] for row in sample], [row["y"] for row in sample]
    )
    write_batches(place, (table(dice, TO_SCORE // 4, n) for n in range(4)))
    rows = spark.read.parquet(str(place)).drop("y", "k").repartition(2).persist()
    rows.count()
    version = ("2026-01-01T00:00:00Z", canonical_bytes(trained), made_with(trained))
    of_river = Versioned(FEATURES, Task.CLASS, is_yes_or_no=True, name="m", at=AT, fixed=version)
    ways: dict[str, Callable[[], DataFrame]] = {
        "River's, by ms.score": lambda: scored(
            Chosen(rows, of_river, BooleanType(), ()), Aside(), AT
        ),
        "scikit-learn's, by ms.score": lambda: ms.score(
            rows, fitted, features=FEATURES, returns="BOOLEAN"
        ),
    }
    found = {}
    for name, way in ways.items():
        for _ in range(2):
            began = time.perf_counter()
            hashed = F.sum(F.xxhash64("prediction", "score"))
            way().agg(F.count("*"), hashed).collect()
            found[name] = TO_SCORE / (time.perf_counter() - began)
    alone = [{name: row[name] for name in FEATURES} for row in table(dice, 50_000, 0).to_pylist()]
    began = time.perf_counter()
    for row in alone:
        trained.predict_one(row)
    found["River alone, row by row"] = len(alone) / (time.perf_counter() - began)
    return found


def compared(spark: SparkSession, name: str, place: Path) -> dict[str, Any]:
    """Give a learner to River alone, to foreachBatch by hand and to ours, in turn."""
    rows, make = LEARNERS[name]
    files, found = place / "files", dict[str, list[float]]()
    write_batches(files, tables(rows))
    for number in range(PASSES):
        mine = ours(spark, files, place / f"ours-{number}", make)
        words = [sys.executable, "-m", "bench.learn", name, str(files)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        alone, of_processor = map(float, done.stdout.split())
        hand = by_hand(spark, files, place / f"hand-{number}", make)
        for way, rate in (
            ("ours", mine),
            ("River alone", alone),
            ("River alone, of a core to itself", of_processor),
            ("foreachBatch by hand", hand),
        ):
            found.setdefault(way, []).append(rate)
        print(name, {way: round(rates[-1]) for way, rates in found.items()}, flush=True)
    middle = {way: statistics.median(rates) for way, rates in found.items()}
    return {
        "rows a second, a model for each key": {way: round(rate) for way, rate in middle.items()},
        "each pass": {way: list(map(round, rates)) for way, rates in found.items()},
        "ours to River alone": round(middle["ours"] / middle["River alone"], 2),
        "ours to foreachBatch by hand": round(middle["ours"] / middle["foreachBatch by hand"], 2),
    }


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-learn-") as folder:
        place = Path(folder)
        spark = session(place / "logs")
        learners = {name: compared(spark, name, place / name) for name in LEARNERS}
        files, make = place / "logistic regression" / "files", LEARNERS["logistic regression"][1]
        one = ours(spark, files, place / "one", make, key=False)
        sums = merged(spark, files, place / "merged")
        by_score = scoring(spark, place / "to score")
        stop_session(spark)
    write_report(
        "learn",
        {
            "keys": KEYS,
            **learners,
            "ours to River alone, wanted at least": 1.6,
            "one logistic regression of all rows, rows a second": {
                "row by row": round(one),
                "by sums": round(sums),
            },
            "scored, rows a second": {name: round(found) for name, found in by_score.items()},
            "scored, wanted at least": 100_000,
        },
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*river_alone(Path(sys.argv[2]), LEARNERS[sys.argv[1]][1]))
    else:
        main()

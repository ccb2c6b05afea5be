"""Scoring with models of any library, rows that cannot be scored, and models that are not read."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import LinearRegression as SparkRegression
from pyspark.sql.types import StructType
from river import linear_model, naive_bayes
from skl2onnx import to_onnx  # type: ignore[import-untyped]
from sklearn.linear_model import LinearRegression, LogisticRegression as Logistic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.faults import raises
from tests.learn.lessons import AT, LESSONS, Lesson, arrivals, learning_of
from tests.learn.stored import make_home
from tests.learn.test_learning import whole

import millstream as ms
from millstream.learn.onnx import OnnxModel
from millstream.learn.pickled import digest_of
from millstream.learn.scoring import Aside, Scoring, TrainedElsewhere
from millstream.learn.stored import versions_of
from millstream.learn.versions import ModelReference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.operators.state.raised_rows import RaisedRow
    from millstream.testing import Script

POINTS = [[0.0, 1.0], [1.0, 3.0], [8.0, 2.0], [9.0, 5.0], [4.0, 4.0]]
CLASSES = [False, False, True, True, False]
NUMBERS = [1.0, 4.0, 10.0, 14.0, 8.0]
FEATURES = ("x", "z")


def scoring(model: Any, kind: str, features: tuple[str, ...] = FEATURES) -> Scoring:
    """Score in a task, and quarantine."""
    types: Any = pa
    prediction = types.type_for_alias({"boolean": "bool"}.get(kind, kind))
    fields = {
        "is_right": pa.bool_(),
        "prediction": prediction,
        "score": pa.float64(),
        "version": pa.string(),
    }
    struct = types.struct(list(fields.items()))
    trained = TrainedElsewhere(model, features, "v", is_yes_or_no=kind == "boolean")
    return Scoring(trained, struct, kind, Aside(tolerates=True))


def scored(of: Scoring, rows: list[dict[str, Any]]) -> tuple[list[Any], list[RaisedRow]]:
    raised: list[RaisedRow] = []
    types: Any = pa
    found: Any = of.scored(types.array(rows), raised)
    return found.to_pylist(), raised


def test_a_model_of_onnx_predicts_what_the_library_does_that_trained_it(tmp_path: Path) -> None:
    import numpy as np

    points = np.array(POINTS, dtype=np.float32)
    classes = make_pipeline(StandardScaler(), Logistic()).fit(points, CLASSES)
    numbers = LinearRegression().fit(points, NUMBERS)
    rows = [dict(zip(FEATURES, point, strict=True)) for point in POINTS]
    for model, kind in ((classes, "boolean"), (numbers, "double")):
        file = tmp_path / f"{kind}.onnx"
        file.write_bytes(to_onnx(model, points[:1]).SerializeToString())

        found, raised = scored(scoring(OnnxModel.read(str(file), AT), kind), rows)

        assert raised == []
        said = [row["prediction"] for row in found]
        if kind == "boolean":
            assert said == model.predict(points).tolist()
            chances = model.predict_proba(points)[:, 1].tolist()
            assert [row["score"] for row in found] == pytest.approx(chances, abs=1e-6)
        else:
            assert said == pytest.approx(model.predict(points).tolist(), abs=1e-4)


def test_a_model_of_onnx_with_an_input_for_each_feature_gets_them_by_name(tmp_path: Path) -> None:
    import pandas as pd
    from skl2onnx.common.data_types import (  # type: ignore[import-untyped]
        FloatTensorType,
    )

    frame = pd.DataFrame(POINTS, columns=FEATURES, dtype="float32")
    model = Logistic().fit(frame.to_numpy(), CLASSES)
    kinds = [(name, FloatTensorType([None, 1])) for name in FEATURES]
    from sklearn.compose import ColumnTransformer

    chosen = ColumnTransformer([("same", "passthrough", [*FEATURES])])
    pipeline = make_pipeline(chosen, model).fit(frame, CLASSES)
    file = tmp_path / "named.onnx"
    file.write_bytes(to_onnx(pipeline, initial_types=kinds).SerializeToString())
    rows = [{"z": z, "x": x} for x, z in POINTS]

    found, _ = scored(scoring(OnnxModel.read(str(file), AT), "boolean"), rows)

    assert [row["prediction"] for row in found] == pipeline.predict(frame).tolist()


def test_files_that_are_no_models_are_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(b"not a model")

    for path in (damaged, tmp_path / "missing.onnx"):
        with raises("MODEL_UNREADABLE", match="export it again"):
            OnnxModel.read(str(path), AT)


def test_rows_that_a_model_raises_on_are_refused_and_the_others_scored() -> None:
    def fragile(frame: Any) -> Any:
        if (frame["x"] == 8.0).any():
            raise ArithmeticError
        return frame["x"] * 2

    rows = [{"x": x, "more": "kept"} for x in (1.0, 8.0, None, math.nan, math.inf, 2.0)]

    found, raised = scored(scoring(fragile, "double", ("x",)), rows)

    assert [(row["is_right"], row["prediction"]) for row in found] == [
        *((True, 2.0), (False, None), (False, None), (False, None), (False, None), (True, 4.0)),
    ]
    reasons = [row.traceback.splitlines()[-1] for row in sorted(raised, key=lambda row: row.row)]
    assert sorted(reasons) == [
        "ArithmeticError",
        "the feature 'x' is inf",
        "the feature 'x' is nan",
        "the feature 'x' is null",
    ]
    assert {json.loads(row.row)["more"] for row in raised} == {"kept"}
    assert {row.function for row in raised} == {"ms.score"}


def test_a_prediction_of_another_type_refuses_the_row_alone() -> None:
    def odd(frame: Any) -> list[Any]:
        return ["text" if x == 8.0 else x for x in frame["x"]]

    found, raised = scored(scoring(odd, "double", ("x",)), [{"x": 1.0}, {"x": 8.0}, {"x": 3.0}])

    assert [row["prediction"] for row in found] == [1.0, None, 3.0]
    assert len(raised) == 1


def test_without_a_quarantine_what_a_model_raises_stops_the_query() -> None:
    def fragile(frame: Any) -> Any:
        raise ArithmeticError

    strict = replace(scoring(fragile, "double", ("x",)), aside=Aside())

    with pytest.raises(ArithmeticError):
        scored(strict, [{"x": 1.0}])


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "null": ({"https": None}, "the feature 'https' is null"),
    "gone": ({"https": ...}, "the feature 'https' is null"),
    "NaN": ({"https": math.nan}, "the feature 'https' is nan"),
    "infinite": ({"https": math.inf}, "the feature 'https' is inf"),
    "another type": ({"https": "yes"}, "at `$.https`"),
    "an object": ({"https": {"a": 1}}, "at `$.https`"),
    "label of another type": ({"y": "maybe"}, "at `$.y`"),
}


def as_spark_writes(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity"
    return value


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("lesson", [LESSONS[0], LESSONS[1]], ids=lambda lesson: lesson.name)
def test_each_kind_of_bad_row_is_refused_with_its_reason_and_learning_goes_on(
    lesson: Lesson, bad: str
) -> None:
    change, reason = BAD[bad]
    data = Lesson(lesson.name, lesson.make, LESSONS[0].data, LESSONS[0].metric)
    rows, learning = arrivals(data)[:60], learning_of(data)
    expected, _ = whole(learning, rows)
    us, text = rows[30]
    spoilt = {k: v for k, v in {**json.loads(text), **change}.items() if v is not ...}
    written = json.dumps({k: as_spark_writes(v) for k, v in spoilt.items()})

    found, raised = whole(learning, [*rows, (us + 1, written)])

    assert found == expected
    [why] = raised
    assert reason in why.splitlines()[-1]


def test_a_class_never_seen_is_learnt_unless_the_classes_are_declared() -> None:
    def data() -> Any:
        return (({"a": float(n % 7)}, f"c{n % 3 if n < 80 else 9}") for n in range(120))

    lesson = Lesson("classes", naive_bayes.GaussianNB, data, LESSONS[2].metric)
    rows = arrivals(lesson)

    free, none = whole(learning_of(lesson), rows)
    bound, raised = whole(learning_of(lesson, classes=("c0", "c1", "c2")), rows)

    assert none == []
    assert sum(answer[0] == "scored" for answer in free) == 120
    assert {why.splitlines()[-1] for why in raised} == {
        "the label 'c9' is none of 'c0', 'c1', 'c2'"
    }
    assert sum(answer[0] == "scored" for answer in bound) == 80


def reference(home: Path) -> ModelReference:
    table = make_home(home).table("champion")
    return ModelReference(
        "m", str(table), lambda spark: spark.range(0), None, AT, (), None, StructType()
    )


class Evil:
    """What runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit('a pickle ran')",))


def test_forged_bytes_in_a_table_are_not_loaded(tmp_path: Path) -> None:
    found = reference(tmp_path)
    newest = found.version()
    [(_, packed, _, digest)] = found.chosen(newest)
    assert digest_of(packed) == digest
    rows = DeltaTable(found.path or "").to_pyarrow_table().to_pylist()
    schema = DeltaTable(found.path or "").to_pyarrow_table().schema
    for row in rows:
        if row["_version"] == newest:
            row["_model"] = pickle.dumps(Evil())
    write_deltalake(found.path or "", pa.Table.from_pylist(rows, schema), mode="overwrite")

    with raises("MODEL_UNREADABLE", match="not those that were committed"):
        found.chosen(newest)


@pytest.mark.spark
def test_models_come_from_the_home_alone(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(1).selectExpr("id * 1D AS x")
    file = tmp_path / "model.pkl"
    file.write_bytes(pickle.dumps(Evil()))
    elsewhere = spark.read.format("delta").load(str(make_home(tmp_path / "home").table("champion")))
    marked = elsewhere.withMetadata("prediction", {"millstream.model": "champion"})
    smuggled = rows.withColumn("_millstream_bytes", rows["x"].cast("string").cast("binary"))

    with raises("SCORE_REFUSED", match="a pickle runs code"):
        ms.score(rows, str(file), features=["x"])
    for model in (elsewhere, marked):
        with raises("SCORE_REFUSED", match="no model that the function reads"):
            ms.score(rows, model)
    with raises("SCORE_REFUSED", match="'_millstream_bytes', which is one of Millstream's"):
        ms.score(smuggled, lambda frame: frame["x"], features=["x"])
    with raises("SCORE_REFUSED", match="on_error='ignore'"):
        ms.score(rows, lambda frame: frame["x"], features=["x"], on_error="ignore")  # type: ignore[arg-type]


@pytest.mark.spark
def test_a_pipeline_of_spark_ml_scores_as_it_transforms(spark: SparkSession) -> None:
    points = [(*point, float(c), n) for point, c, n in zip(POINTS, CLASSES, NUMBERS, strict=True)]
    rows = spark.createDataFrame(points, "x DOUBLE, z DOUBLE, label DOUBLE, n DOUBLE")
    vector = VectorAssembler(inputCols=["x", "z"], outputCol="vector")
    fitted: PipelineModel = Pipeline(
        stages=[vector, LogisticRegression(featuresCol="vector", predictionCol="class")]
    ).fit(rows)
    regression = SparkRegression(featuresCol="vector", labelCol="n")
    number = Pipeline(stages=[vector, regression]).fit(rows)
    new = rows.select("x", "z")

    found = ms.score(new, fitted, features=["x", "z"], returns="BOOLEAN", version="v3")
    numbers = ms.score(new, number, features=["x", "z"])

    expected = fitted.transform(rows).select("x", "class", "probability").orderBy("x").collect()
    assert found.columns == ["x", "z", "prediction", "score", "version"]
    for row, wanted in zip(found.orderBy("x").collect(), expected, strict=True):
        assert row["prediction"] is bool(wanted["class"])
        assert row["score"] == pytest.approx(float(wanted["probability"][1]))
        assert row["version"] == "v3"
    by_spark = {r["x"]: r["prediction"] for r in number.transform(rows).collect()}
    assert {r["x"]: r["prediction"] for r in numbers.collect()} == by_spark
    assert {r["version"] for r in numbers.collect()} == {number.uid}


def mixed(spark: SparkSession, file: Path) -> ms.App:
    """An app whose rows are scored by a model of ONNX, one of Spark ML, and one that learns."""
    import numpy as np

    points = np.array(POINTS, dtype=np.float32)
    trained = make_pipeline(StandardScaler(), Logistic()).fit(points, CLASSES)
    file.write_bytes(to_onnx(trained, points[:1]).SerializeToString())
    frame = spark.createDataFrame(
        [(*point, float(taken)) for point, taken in zip(POINTS, CLASSES, strict=True)],
        "x DOUBLE, z DOUBLE, label DOUBLE",
    )
    vector = VectorAssembler(inputCols=["x", "z"], outputCol="vector")
    pipeline = Pipeline(stages=[vector, LogisticRegression(featuresCol="vector")]).fit(frame)
    app = ms.App("scored")

    @app.source(event_time="at", watermark="10 seconds")
    def rows() -> ms.Memory:
        return ms.Memory("at TIMESTAMP, x DOUBLE, z DOUBLE, taken BOOLEAN")

    @app.model(learner=linear_model.LogisticRegression(), label="taken", every="10 seconds")
    def learner(rows: DataFrame) -> DataFrame:
        return rows

    options: Any = {"features": ["x", "z"], "returns": "BOOLEAN", "on_error": "quarantine"}

    @app.table
    def by_onnx(rows: DataFrame) -> DataFrame:
        return ms.score(rows, file, version="onnx", **options)

    @app.table
    def by_spark(rows: DataFrame) -> DataFrame:
        return ms.score(rows, pipeline, version="spark", **options)

    @app.table
    def by_stream(rows: DataFrame, learner: DataFrame) -> DataFrame:
        return ms.score(rows, learner, on_error="quarantine")

    return app


@pytest.mark.spark
def test_a_stream_scores_with_models_of_other_libraries_and_sets_bad_rows_aside(
    stream: Callable[..., Script], spark: SparkSession, tmp_path: Path
) -> None:
    with stream(mixed(spark, tmp_path / "taken.onnx")) as s:
        for second, ((x, z), taken) in enumerate(zip(POINTS, CLASSES, strict=True)):
            s.send("rows", at=f"12:00:{second:02}", x=x, z=z, taken=taken)
        s.send("rows", at="12:00:06", x=None, z=1.0, taken=True)
        s.send("rows", '{"at": "2026-01-01T12:00:07Z", "z": 1.0, "taken": true}')
        s.send("rows", '{"at": "2026-01-01T12:00:08Z", "x": "many", "z": 1.0, "taken": true}')
        s.batch()
        s.send("rows", at="12:01:00", x=1.0, z=1.0, taken=None)
        s.batch()
        s.batch()
        s.send("rows", at="12:01:30", x=9.0, z=1.0, taken=None)
        s.send("rows", at="12:01:31", x=None, z=1.0, taken=None)
        s.batch()
        s.batch()

        assert s.verdicts("rows")["malformed"] == 1
        for name in ("by_onnx", "by_spark", "by_stream", "learner"):
            refused = s.table(f"{name}__quarantine").rows("_raised")
            assert {row[0] for row in refused} == {"the feature 'x' is null"}, name
            assert len(refused) == (2 if name == "learner" else 3)
        for name, said in (("by_onnx", "onnx"), ("by_spark", "spark")):
            found = s.table(name).rows("x", "z", "prediction", "version")
            known = {tuple(point): taken for point, taken in zip(POINTS, CLASSES, strict=True)}
            said_of = {tuple(map(float, row[:2])): row[2] for row in found}
            assert {point: said_of[point] for point in known} == known
            assert {row[3] for row in found} == {said}
        assert max(s.table("by_stream").rows("at", "version"))[1] == "2026-01-01T12:00:10Z"


def test_every_version_of_a_home_says_what_wrote_it(tmp_path: Path) -> None:
    versions = versions_of(make_home(tmp_path).table("champion"))

    assert {one.made_with.partition(" ")[0] for one in versions} == {"river"}
    assert all(len(one.digest) == 64 for one in versions)

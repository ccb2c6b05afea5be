from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

import millstream as ms
from millstream.crash import PROGRAM_POINTS, armed
from millstream.dstream import State, StateSpec, Steps, StreamingContext, rows_into
from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WORDS = [["a", "b"], ["a"], [], ["b", "c"], ["a"], [], ["c"], ["a"], [], ["b"]]


def context(spark: SparkSession, home: Path | None = None) -> StreamingContext:
    ssc = StreamingContext(spark.sparkContext, 1)
    if home is not None:
        ssc.checkpoint(str(home))
    return ssc


def add(new: list[int], total: int | None) -> int:
    return sum(new) + (total or 0)


def totals_into(ssc: StreamingContext, database: Path) -> None:
    store = ms.SQLite(str(database), table="counts", key="word")
    pairs = ssc.queueStream(WORDS).map(lambda word: (word, 1))
    window = pairs.reduceByKeyAndWindow(lambda a, b: a + b, lambda a, b: a - b, 6, 1)
    totals = pairs.updateStateByKey(add).leftOuterJoin(window)
    rows = totals.map(lambda kv: (kv[0], kv[1][0], kv[1][1]))
    rows.foreachRDD(rows_into(store, "word STRING, total BIGINT, recent BIGINT"))


@pytest.mark.parametrize("point", PROGRAM_POINTS)
def test_a_store_has_every_batch_once_wherever_the_driver_dies(
    spark: SparkSession, tmp_path: Path, point: str
) -> None:
    def die(reached: str, _: str, __: int) -> None:
        if reached == point:
            raise KeyboardInterrupt

    home, database = tmp_path / "home", tmp_path / "counts.db"
    runs = 0
    for done in (3, 7):
        ssc = context(spark, home)
        totals_into(ssc, database)
        with Steps(ssc, runs) as steps:
            steps.run(done - runs - 1)
            with armed(home, die), pytest.raises(KeyboardInterrupt):
                steps.run()
        runs = done
    ssc = context(spark, home)
    totals_into(ssc, database)
    with Steps(ssc, runs) as steps:
        steps.run(len(WORDS) - runs)

    rows = sqlite3.connect(database).execute("SELECT word, total, recent FROM counts").fetchall()
    assert sorted(rows) == [("a", 4, 2), ("b", 3, 1), ("c", 2, 1)]


def test_only_what_a_later_batch_reads_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    ssc = context(spark, tmp_path)
    pairs = ssc.queueStream([[n] for n in range(12)]).map(lambda n: (n % 3, n))
    pairs.updateStateByKey(add).window(3).foreachRDD(lambda rdd: rdd.count())

    with Steps(ssc) as steps:
        steps.run(12)
        kept = [
            len([*(tmp_path / "dstream" / name).glob("[0-9]*")]) for name in ("journal", "states/0")
        ]

    assert max(kept) <= 6


def test_the_number_of_buckets_may_change(spark: SparkSession, tmp_path: Path) -> None:
    def counts(tasks: int) -> dict[str, int]:
        ssc = context(spark, tmp_path)
        got: dict[str, int] = {}
        pairs = ssc.queueStream(WORDS).map(lambda word: (word, 1))
        pairs.updateStateByKey(add, tasks).foreachRDD(lambda rdd: got.update(rdd.collect()))
        with Steps(ssc, tasks) as steps:
            steps.run()
        return got

    assert counts(2) == {"a": 1, "b": 1}
    assert counts(5) == {"a": 2, "b": 1}


def test_a_window_over_a_state_outlasts_another_number_of_buckets(
    spark: SparkSession, tmp_path: Path
) -> None:
    def windows(now: int, tasks: int) -> list[Any]:
        ssc = context(spark, tmp_path)
        got: list[Any] = []
        spec = StateSpec.function(mood).numPartitions(tasks)
        moods = ssc.queueStream([[("ann", 1)], [("bob", 2)], [("ann", 3)]]).mapWithState(spec)
        moods.window(3).foreachRDD(lambda rdd: got.append(sorted(rdd.collect())))
        with Steps(ssc, now) as steps:
            steps.run()
        return got

    given = [windows(now, tasks) for now, tasks in enumerate((2, 5, 3))]

    assert given[0] == [[("ann", 1)]]
    assert given[1] == [[("ann", 1), ("bob", 2)]]
    assert given[2] == [[("ann", 1), ("ann", 4), ("bob", 2)]]


def test_another_incremental_window_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    def start(seconds: int) -> Steps:
        ssc = context(spark, tmp_path)
        pairs = ssc.queueStream([[(1, 1)]])
        pairs.reduceByKeyAndWindow(lambda a, b: a + b, lambda a, b: a - b, seconds).pprint()
        return Steps(ssc)

    with start(6) as steps:
        steps.run()

    with pytest.raises(MillstreamError) as refused:
        start(8)

    assert refused.value.code == "DSTREAM_CHANGED"
    assert "reduceByKeyAndWindow of 8000 ms each 1000 ms" in str(refused.value)


def test_text_files_of_a_killed_batch_are_written_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    ssc = context(spark)
    ssc.queueStream([["a"], ["b"]]).saveAsTextFiles(str(tmp_path / "out"))
    killed, kept = tmp_path / "out-1000", tmp_path / "out-2000"
    (killed / "_temporary" / "0").mkdir(parents=True)
    kept.mkdir()
    (kept / "_SUCCESS").touch()

    with Steps(ssc, 0) as steps:
        steps.run(2)

    assert "".join(sorted(f.read_text() for f in killed.glob("part-*"))) == "a\n"
    assert (killed / "_SUCCESS").exists()
    assert [file.name for file in kept.iterdir()] == ["_SUCCESS"]


def test_a_program_with_other_state_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    ssc = context(spark, tmp_path)
    ssc.queueStream([]).pprint()
    with Steps(ssc) as steps:
        steps.run()

    other = context(spark, tmp_path)
    other.queueStream([]).updateStateByKey(add).pprint()
    with pytest.raises(MillstreamError) as refused:
        Steps(other)

    assert refused.value.code == "DSTREAM_CHANGED"
    assert "updateStateByKey 0" in str(refused.value)
    other.stop(stopSparkContext=False)


def test_a_home_has_one_driver(spark: SparkSession, tmp_path: Path) -> None:
    ssc = context(spark, tmp_path)
    ssc.queueStream([]).pprint()
    with Steps(ssc):
        second = context(spark, tmp_path)
        second.queueStream([]).pprint()
        with pytest.raises(RuntimeError, match="only one StreamingContext"):
            Steps(second)


def test_a_refused_row_stops_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    ssc = context(spark)
    store = ms.SQLite(str(tmp_path / "s.db"), table="t", key="k")
    ssc.queueStream([[(None, 1)]]).foreachRDD(rows_into(store, "k STRING, n BIGINT"))

    with Steps(ssc) as steps, pytest.raises(MillstreamError) as refused:
        steps.run()

    assert refused.value.code == "DSTREAM_REFUSED"


def test_a_function_may_be_a_store(spark: SparkSession, tmp_path: Path) -> None:
    batches: list[Any] = []

    def note(rows: Any, batch: ms.Batch) -> None:
        batches.append((batch.number, rows.to_pylist()))

    ssc = context(spark)
    ssc.queueStream([[(1,)], [], [(2,)]]).foreachRDD(
        rows_into(ms.sink(note), "n INT", mode="append")
    )

    with Steps(ssc) as steps:
        steps.run(3)

    assert batches == [(0, [{"n": 1}]), (2, [{"n": 2}])]


def mood(user: str, score: int | None, total: State[int]) -> tuple[str, int | str] | None:
    if total.isTimingOut():
        return user, "gone"
    if score == 0:
        total.remove()
        return None
    total.update((total.getOption() or 0) + (score or 0))
    return user, total.get()


def test_map_with_state_is_as_update_state_by_key_and_times_out(spark: SparkSession) -> None:
    scores = [[("ann", 1), ("bob", 2), ("ann", 3)], [("bob", 0)], [], [], [("eve", 1)], []]
    ssc = context(spark)
    emitted: list[Any] = []
    states: list[Any] = []
    spec = StateSpec.function(mood).initialState([("eve", 5)]).numPartitions(3).timeout(2)
    moods = ssc.queueStream(scores).mapWithState(spec)
    moods.foreachRDD(lambda rdd: emitted.append(sorted(rdd.collect(), key=str)))
    moods.stateSnapshots().foreachRDD(lambda rdd: states.append(dict(rdd.collect())))

    with Steps(ssc) as steps:
        steps.run(6)

    assert emitted[0] == [("ann", 1), ("ann", 4), ("bob", 2)]
    assert emitted[1:] == [[], [], [("ann", "gone"), ("eve", "gone")], [("eve", 1)], []]
    assert states[0] == {"ann": 4, "bob": 2, "eve": 5}
    assert states[1:4] == [{"ann": 4, "eve": 5}, {"ann": 4, "eve": 5}, {}]
    assert states[4:] == [{"eve": 1}, {"eve": 1}]


def test_a_function_of_map_with_state_may_take_the_time(spark: SparkSession) -> None:
    seen: list[Any] = []

    def when(time: datetime, key: str, value: int | None, state: State[int]) -> datetime:
        return time

    ssc = context(spark)
    moments = ssc.queueStream([[("a", 1)]]).mapWithState(StateSpec.function(when))
    moments.foreachRDD(lambda rdd: seen.extend(rdd.collect()))

    with Steps(ssc, 1_700_000_000) as steps:
        steps.run()

    assert seen == [datetime.fromtimestamp(1_700_000_001)]  # noqa: DTZ006


@pytest.mark.parametrize("operation", ["get", "update", "remove"])
def test_what_cannot_be_done_with_a_state_is_refused(operation: str) -> None:
    state: State[int] = State(1, is_defined=operation != "get", is_timing_out=True)

    with pytest.raises(MillstreamError) as refused:
        getattr(state, operation)(*([2] if operation == "update" else []))

    assert refused.value.code == "DSTREAM_STATE_OF_KEY"


def test_time_without_a_driver_has_no_batches(spark: SparkSession, tmp_path: Path) -> None:
    counts: list[Any] = []
    for begin in (0, 1000):
        ssc = context(spark, tmp_path)
        numbers = ssc.queueStream([[1], [2], [3], [4]])
        numbers.window(5).foreachRDD(lambda rdd: counts.append(sorted(rdd.collect())))
        with Steps(ssc, begin) as steps:
            steps.run(2)

    assert counts == [[1], [1, 2], [3], [3, 4]]
    entries = [json.loads(f.read_text()) for f in sorted(tmp_path.glob("dstream/journal/0*.json"))]
    assert [entry["ms"] for entry in entries][-2:] == [1_001_000, 1_002_000]


def test_many_files_of_any_name_are_one_batch(spark: SparkSession, tmp_path: Path) -> None:
    folder, seen = tmp_path / "in", []
    folder.mkdir()
    ssc = context(spark)
    lines = ssc.textFileStream(str(folder))
    lines.foreachRDD(lambda rdd: seen.append((sorted(rdd.collect()), rdd.getNumPartitions())))
    names = ["a,b", "{c}", "[d]*", "e?", "f g", "h^", *(f"{number:02d}" for number in range(20))]

    with Steps(ssc) as steps:
        for name in names:
            (folder / name).write_text(name)
        steps.run()

    assert seen == [(sorted(names), spark.sparkContext.defaultParallelism)]


@pytest.mark.parametrize("folder", ["hdfs://host/counts", "s3a://bucket/counts", "hdfs:/counts"])
def test_a_checkpoint_directory_is_on_this_machine(folder: str, spark: SparkSession) -> None:
    ssc = context(spark)

    with pytest.raises(MillstreamError) as refused:
        ssc.checkpoint(folder)

    assert refused.value.code == "HOME_UNUSABLE"


def test_a_checkpoint_directory_may_be_a_local_address(spark: SparkSession, tmp_path: Path) -> None:
    ssc = context(spark)
    ssc.checkpoint(f"file://{tmp_path}/counts")
    ssc.queueStream([[1]]).foreachRDD(lambda rdd: None)

    with Steps(ssc) as steps:
        steps.run()

    assert (tmp_path / "counts/dstream").is_dir()

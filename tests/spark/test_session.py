from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millstream.errors import fault
from millstream.spark import session as spark_session
from millstream.spark.session import open_session
from millstream.spark.training import exercise
from millstream.testing.quick_settings import SHORT_LIVED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_python(code: str, log_dir: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own; it finds its log folder in `LOGS`."""
    prelude = f"from pathlib import Path; LOGS = Path({str(log_dir)!r})\n"
    return subprocess.run(
        [sys.executable, "-c", prelude + code],
        env={**os.environ, **SHORT_LIVED},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        timeout=120,
    )


@pytest.mark.spark
def test_a_second_open_takes_the_running_session(spark: SparkSession) -> None:
    partitions = "spark.sql.shuffle.partitions"
    before = spark.conf.get(partitions) or ""
    again = open_session("again", conf={partitions: "2"})
    spark.conf.set(partitions, before)

    assert again.sparkContext is spark.sparkContext
    assert again.sparkContext.appName == "tests"


@pytest.mark.spark
def test_streams_to_files_and_delta_and_windowed_state_work(
    spark: SparkSession, tmp_path: Path
) -> None:
    exercise(spark, tmp_path)

    counted = spark.read.parquet(str(tmp_path / "counted"))
    history = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path / 'landed'}`")
    assert {row["count"] for row in counted.collect()} == {10}
    assert history.count() == 1


@pytest.mark.spark
def test_state_goes_on_where_it_was_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    def count_all() -> None:
        query = (
            spark.readStream.schema("n long")
            .json(str(tmp_path / "in"))
            .groupBy("n")
            .count()
            .writeStream.outputMode("complete")
            .format("memory")
            .queryName("counted")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    for _ in range(3):
        spark.range(10).selectExpr("id % 2 as n").write.mode("append").json(str(tmp_path / "in"))
        count_all()

    state = spark.read.format("statestore").load(str(tmp_path / "checkpoint"))
    assert {row["count"] for row in spark.table("counted").collect()} == {15}
    assert {row["value"]["count"] for row in state.collect()} == {15}


@pytest.mark.spark
@pytest.mark.slow
def test_nothing_is_printed_and_ctrl_c_is_for_python_to_answer(tmp_path: Path) -> None:
    done = run_python(
        """
import os, signal, time
from millstream.spark.session import open_session, stop_session

spark = open_session("quiet", master="local[1]", log_dir=LOGS)
try:
    os.killpg(0, signal.SIGINT)
    time.sleep(10)
except KeyboardInterrupt:
    assert spark.range(3).count() == 3
    stop_session(spark)
""",
        tmp_path,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "WARN" in (tmp_path / "spark.log").read_text()


@pytest.mark.spark
def test_a_jvm_that_does_not_start_is_reported_with_the_log(tmp_path: Path) -> None:
    done = run_python(
        """
from millstream.errors import MillstreamError
from millstream.spark import session as spark_session
from millstream.spark.session import open_session

try:
    open_session("broken", conf={"spark.driver.memory": "nonsense"}, log_dir=LOGS)
except MillstreamError as error:
    print(error)
""",
        tmp_path,
    )

    log = tmp_path / "spark.log"
    assert done.stderr == ""
    assert done.stdout.startswith("[SPARK_START] Spark does not start: ")
    assert str(log) in done.stdout
    assert "Invalid maximum heap size" in log.read_text()


@pytest.mark.spark
@pytest.mark.slow
def test_what_spark_logs_is_bounded(tmp_path: Path) -> None:
    done = run_python(
        """
from millstream.spark.session import open_session, stop_session

spark = open_session("full", master="local[1]", log_dir=LOGS)
log = spark._jvm.org.apache.logging.log4j.LogManager.getLogger("full")
for number in range(100):
    log.warn(f"{number} " + "x" * (1 << 20))
stop_session(spark)
""",
        tmp_path,
    )

    files = {file.name: file.stat().st_size for file in tmp_path.glob("spark.log*")}
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(files) == ["spark.log", *(f"spark.log.{n}" for n in (1, 2, 3))]
    assert 60 << 20 < sum(files.values()) < 86 << 20
    assert " 99 x" in (tmp_path / "spark.log").read_text()


@pytest.mark.spark
@pytest.mark.slow
def test_a_session_that_is_not_ours_is_refused_and_a_wrong_master_is_named(tmp_path: Path) -> None:
    done = run_python(
        """
from pyspark.sql import SparkSession
from millstream.errors import MillstreamError
from millstream.spark import session as spark_session
from millstream.spark.session import open_session

theirs = SparkSession.builder.master("local[1]").appName("theirs").getOrCreate()
for master in ("local[1]", "nonsense"):
    try:
        open_session("ours", master=master, log_dir=LOGS)
    except MillstreamError as error:
        print(error.what)
    theirs.stop()
""",
        tmp_path,
    )

    foreign, wrong = done.stdout.splitlines()
    assert foreign.startswith("this process already runs Spark session 'theirs', which Millstream")
    assert wrong.endswith("Could not parse Master URL: 'nonsense'")


def test_a_start_error_says_where_to_look() -> None:
    assert str(fault("SPARK_START", reason="no memory", log="/tmp/spark.log")) == (
        "[SPARK_START] Spark does not start: no memory\n"
        "  fix: the last lines of '/tmp/spark.log' say why; "
        "`millstream doctor` looks at the machine"
    )


def test_a_foreign_session_is_for_the_user_to_stop() -> None:
    assert str(fault("FOREIGN_SESSION", name="theirs")) == (
        "[FOREIGN_SESSION] this process already runs Spark session 'theirs', which Millstream "
        "did not open and which may lack its jars and settings\n"
        "  fix: call `.stop()` on that session first"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_started_as_a_signal_comes_is_ended(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *command: Any, **options: Any) -> None:
            super().__init__(*command, **options)
            started.append(self.pid)
            signal.raise_signal(number)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    launcher = type("launcher", (), {"Popen": None})
    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), spark_session._ended_if_interrupted(launcher):
            launcher.Popen(["sleep", "60"], start_new_session=True)  # type: ignore[attr-defined]
    finally:
        signal.signal(number, before)

    [pid] = started
    assert not Path(f"/proc/{pid}").exists()


PLAIN = """
import millstream as ms
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.createDataFrame([(1,), (1,)], "id BIGINT")

@ms.stateful(key="id", state="n BIGINT", emits="id BIGINT, n BIGINT", order="arrival")
def counted(key, rows, state, timer):
    yield key, len(rows)

added = ms.add_columns(rows, lambda row: {"twice": 2 * row.id}, "twice BIGINT")
print([tuple(row) for row in (*added.collect(), *counted(rows).collect())])
"""


@pytest.mark.spark
@pytest.mark.slow
def test_workers_of_a_session_of_the_user_s_own_find_millstream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = Path(sys.executable).resolve()
    (tmp_path / "python3").symlink_to(bare)
    lacks = subprocess.run(
        [tmp_path / "python3", "-c", "import millstream"], capture_output=True, check=False
    )
    assert lacks.returncode == 1
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)

    ended = run_python(PLAIN, tmp_path)

    assert (ended.returncode, ended.stdout) == (0, "[(1, 2), (1, 2), (1, 2)]\n"), ended.stderr

"""The one Spark session of a process: how it starts, stays quiet and stops."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.settings.secret import Secret, revealed
from millstream.spark.archive import archive_flags, make_archive
from millstream.spark.cache import cache_dir, for_owner
from millstream.spark.defaults import MARK, is_local, settings
from millstream.spark.jars import resolve
from millstream.spark.java import find_java
from millstream.spark.report import silent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    from millstream.spark.java import Java
    from millstream.spark.report import Report

_END_OF_LOG = 1 << 16
_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.filePermissions = rw-------
appender.file.policy.type = SizeBasedTriggeringPolicy
appender.file.policy.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""


def prepare(report: Report = silent) -> Java:
    """Prepare a quick start: find Java, download the jars, make the class archive."""
    java = find_java()
    report("java", f"{java.version} at {java.home}")
    resolve(report=report)
    make_archive(java, report=report)
    return java


def open_session(
    name: str,
    *,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    log_dir: Path | None = None,
    report: Report = silent,
) -> SparkSession:
    """Start Spark, or return the session that Millstream started earlier in this process.

    Spark prints nothing; its messages go to `spark.log` in `log_dir`. Ctrl-C
    and a closed terminal reach Python only.

    Raises:
        FOREIGN_SESSION: Another Spark session runs in this process.
        SPARK_START: Spark does not start.
    """
    if running := _running_session(conf or {}):
        return running
    java = find_java()
    combined = settings(
        master, conf or {}, jars=resolve(report=report), java_flags=archive_flags(java)
    )
    began = time.monotonic()
    spark = start(name, java=java, conf=combined, log_dir=log_dir or cache_dir() / "logs")
    report("spark", f"started in {time.monotonic() - began:.1f} s")
    _silence_query_context()
    return spark


def _silence_query_context() -> None:
    """Stop PySpark from printing the JSON of an error that it also raises."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def warm_up(spark: SparkSession) -> None:
    """Start the Python workers in the background, so that the first batch need not wait."""

    def start_worker() -> None:
        with contextlib.suppress(Exception):
            spark.range(0, 1, 1, 1).mapInArrow(_same, "id BIGINT").collect()

    threading.Thread(target=start_worker, daemon=True).start()


def _same(batches: Any) -> Any:
    return batches


def share_python(spark: SparkSession) -> None:
    """Have the workers of a local session run with the Python of this process.

    A session that the user has started runs the first `python3` of the PATH instead, which may lack
    Millstream. If PYSPARK_PYTHON is set, it was chosen.
    """
    context = spark.sparkContext
    if "PYSPARK_PYTHON" not in os.environ and is_local(context.master or ""):
        context.pythonExec = sys.executable


def stop_session(spark: SparkSession) -> None:
    """Stop Spark; its JVM ends with this process, or serves the next session in it."""
    spark.stop()


def start(name: str, *, java: Java, conf: Mapping[str, str], log_dir: Path) -> SparkSession:
    """Start Spark with exactly these settings."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if is_local(conf["spark.master"]):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        # Where the workers have Millstream elsewhere, PYSPARK_PYTHON says where.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    log_dir.mkdir(parents=True, exist_ok=True)
    log = log_dir.absolute() / "spark.log"
    everything = SparkConf(loadDefaults=False).setAppName(name)
    for key, value in conf.items():
        everything.set(key, revealed(value))
    hidden = [key for key, value in conf.items() if isinstance(value, Secret)]
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        gateway: Any = SparkContext._gateway or _launch(everything, log, hidden=hidden)
        # A gateway looks up attributes that are not in its dictionary in its JVM.
        vars(gateway).setdefault("log", str(log))
        spark = SparkSession(SparkContext(conf=everything, gateway=gateway))
    except (PySparkException, Py4JError) as error:
        cause = str(getattr(error, "java_exception", error))
        raise fault("SPARK_START", reason=cause.partition("\n")[0], log=str(log)) from error
    finally:
        # Spark's own handler cancels all jobs; the caller decides what Ctrl-C does.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, on_interrupt)
    return spark


def _launch(conf: SparkConf, log: Path, *, hidden: Collection[str]) -> Any:
    """Launch the JVM in a session of its own, all it prints going to the log.

    Anyone can read its command line, so hidden settings are not there; they are set later.
    """
    from pyspark import SparkConf, java_gateway

    layout = log.with_name("log4j2.properties")
    with open(layout, "w", opener=for_owner) as written:
        written.write(_LOG4J.format(log=log))
    flag = shlex.quote(f"-Dlog4j2.configurationFile={layout}")
    options = conf.get("spark.driver.extraJavaOptions", "")
    conf.set("spark.driver.extraJavaOptions", f"{flag} {options}")
    seen = [(key, value) for key, value in conf.getAll() if key not in hidden]
    visible = SparkConf(loadDefaults=False).setAll(seen)
    with open(log, "ab", opener=for_owner) as output:
        channels = {"stdout": output, "stderr": output, "start_new_session": True}
        with _ended_if_interrupted(java_gateway):
            return java_gateway.launch_gateway(visible, channels)  # type: ignore[no-untyped-call]


def log_of_jvm(otherwise: Path) -> str:
    """Return the path of Spark's log: the one that its JVM was started with, if it runs."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    return str((vars(gateway) if gateway else {}).get("log", otherwise / "spark.log"))


def last_logged() -> str:
    """Return the end of the log of the JVM that was started here; empty if it has none."""
    log = Path(log_of_jvm(Path()))
    return log.read_bytes()[-_END_OF_LOG:].decode(errors="replace") if log.exists() else ""


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM: in the middle of a start, nothing would end what was started."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, lambda number, _: pending.append(number)) for each in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        if pending:
            signal.raise_signal(pending[0])


@contextmanager
def _ended_if_interrupted(launcher: Any) -> Iterator[None]:
    """Kill the JVM if a signal ends its start: it would wait for us for ever."""
    launched: list[subprocess.Popen[bytes]] = []

    def launch(*command: Any, **options: Any) -> subprocess.Popen[bytes]:
        with _interrupted_later():
            launched.append(subprocess.Popen(*command, **options))
        return launched[-1]

    launcher.Popen = launch
    try:
        yield
    except BaseException:
        for process in launched:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        raise
    finally:
        launcher.Popen = subprocess.Popen


def _running_session(conf: Mapping[str, str]) -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None:
        return None
    if context.getConf().get(MARK) is None:
        raise fault("FOREIGN_SESSION", name=context.appName or "")
    spark = SparkSession(context)
    for key, value in conf.items():
        if spark.conf.isModifiable(key):
            spark.conf.set(key, revealed(value))
    return spark

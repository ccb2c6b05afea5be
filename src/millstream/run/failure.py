"""Why a query failed, in the words of the error catalogue."""

from __future__ import annotations

import errno
import re
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException

from millstream.errors import (
    BrokerLostError,
    DriverLostError,
    MillstreamError,
    PythonLateError,
    RecordsLostError,
    SparkFailedError,
    StorageFullError,
)
from millstream.run.build import refused
from millstream.run.health import damage_of
from millstream.spark.session import log_of_jvm
from millstream.spark.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.errors import Location
    from millstream.lake.home import Home

_DISK_FULL = "No space left on device"
_SENTENCE = re.compile(r"\[([A-Z][A-Z_.]+)\] (.+?)\.? +SQLSTATE")
_RAISED = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)$", re.MULTILINE)
_BROKER_SILENT = (
    "org.apache.kafka.common.errors.TimeoutException",
    "Cannot fetch record for offset",
)
_PYTHON_LATE = "Python worker failed to connect back"
_KAFKA_DATA_LOSS = "Some data may have been lost because they are not available in Kafka any more"


def explain(error: BaseException, *, query: str, at: Location, home: Home) -> MillstreamError:
    """Turn whatever a query died of into an error a person can act on."""
    if isinstance(error, MillstreamError):
        return error
    if outside := _of_the_surroundings(error, query=query, at=at, home=home):
        return outside
    log = log_of_jvm(home.logs)
    if isinstance(error, AnalysisException):
        return refused(query, error, at)
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return DriverLostError(log=log)
    if damaged := damage_of(home, query):
        return damaged
    condition, cause = _spoken(error)
    return SparkFailedError(query, condition=condition, cause=cause, log=log)


def _spoken(error: BaseException) -> tuple[str, str]:
    """Find the sentence that says most: of a function in Python, of Spark, or else the first."""
    told = str(error)
    if raised := _RAISED.findall(told):
        return "PYTHON", raised[-1]
    if isinstance(error, Py4JError) and (sentence := _SENTENCE.search(told)):
        return sentence[1], sentence[2]
    if isinstance(error, PySparkException):
        return error.getCondition() or type(error).__name__, words_of(error)
    kind = "JVM" if isinstance(error, Py4JError) else type(error).__name__
    return kind, (told.strip().splitlines() or [""])[0]


def is_python_late(error: BaseException) -> bool:
    """Whether Spark did not wait any longer for Python to start."""
    return _PYTHON_LATE in str(error)


def lost_driver(log: str, *, within_s: float = 0) -> DriverLostError | None:
    """Say so if the JVM has ended, or ends in so many seconds."""
    jvm = getattr(SparkContext._gateway, "proc", None)
    if jvm is None:
        return None
    try:
        jvm.wait(timeout=within_s)
    except subprocess.TimeoutExpired:
        return None
    return DriverLostError(log=log)


@contextmanager
def full_disk_told(home: Home) -> Iterator[None]:
    """Have whatever is raised for want of space say so."""
    try:
        yield
    except Exception as error:
        if isinstance(error, MillstreamError) or not _is_full_disk(error):
            raise
        raise StorageFullError(str(home.path)) from error


def _is_full_disk(error: BaseException) -> bool:
    no_space = isinstance(error, OSError) and error.errno == errno.ENOSPC
    return no_space or _DISK_FULL in str(error)


def _of_the_surroundings(
    error: BaseException, *, query: str, at: Location, home: Home
) -> MillstreamError | None:
    if _is_full_disk(error):
        return StorageFullError(str(home.path))
    if is_python_late(error):
        return PythonLateError(query, log=log_of_jvm(home.logs))
    told = str(error)
    if any(words in told for words in _BROKER_SILENT):
        return BrokerLostError(query, at=at)
    if _KAFKA_DATA_LOSS in told:
        cause = told.partition("Reason: ")[2].partition("\n")[0].rstrip(".")
        return RecordsLostError(query, cause=cause, at=at)
    return None

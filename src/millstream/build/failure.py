"""Why a query failed, in the words of the error catalogue."""

from __future__ import annotations

import builtins
import errno
import re
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException

from millstream.build.build import query_line
from millstream.build.refusal import refused
from millstream.checkpoint.health import damage_of
from millstream.declare.notebook import place_of
from millstream.errors import Location, MillstreamError, fault
from millstream.spark.arguments import CALLED_WITH, is_library
from millstream.spark.message import message_of
from millstream.spark.session import log_of_jvm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.lake.home import Home

_DISK_FULL = "No space left on device"
_SENTENCE = re.compile(r"\[([A-Z][A-Z_.]+)\] (.+?)\.? +SQLSTATE")
_RAISED = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)$", re.MULTILINE)
_BROKER_SILENT = (
    "org.apache.kafka.common.errors.TimeoutException",
    "Cannot fetch record for offset",
)
_FRAME = re.compile(r'^ +File "([^"]+)", line (\d+), in ', re.MULTILINE)
_REFUSED_STATES = ("0A", "42")
"""Classes of SQLSTATE: what Spark does not support, and what is wrong in the query itself."""
_ROW_STATES = ("21", "22", "23", "P0")
"""Classes of SQLSTATE: the query is right, and cannot be computed for one of its rows."""
_PASSING = ("ConnectionError", "Timeout", "TimeoutError", "OSError")
"""Endings of the names of exceptions that may not occur again on a retry."""
_OUT_OF_MEMORY = "MemoryError"
"""How the names of the exceptions of Python, NumPy and Arrow end."""
_PYTHON_LATE = "Python worker failed to connect back"
_PYTHON_DIED = "Python worker exited unexpectedly (crashed)"
_CRASH = re.compile(r"Fatal Python error: (.+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_IMPORTING = re.compile("ModuleNotFoundError|SerializationError|Error from python worker")
"""How it ends when a function, its pickled form or the worker itself imports a module."""
_KAFKA_DATA_LOSS = "Some data may have been lost because they are not available in Kafka any more"


def explain(error: BaseException, *, query: str, at: Location, home: Home) -> MillstreamError:
    """Turn what stopped a query into an error that a person can act on.

    What would happen again with the same rows and the same code is a fault of the app: no restart
    helps. Anything else is transient, and is retried.
    """
    if isinstance(error, MillstreamError):
        return error
    error = _first_cause(error)
    if outside := _fault_outside(error, query=query, at=at, home=home):
        return outside
    log = log_of_jvm(home.logs)
    if isinstance(error, AnalysisException):
        return refused(query, error, at)
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return fault("DRIVER_LOST", log=log)
    if found := damage_of(home, query) or _fault_of_app(error, query=query, at=at):
        return found
    condition, cause = _condition_and_cause(error)
    return fault("SPARK_FAILED", query=query, condition=condition, cause=cause, log=log)


def _first_cause(error: BaseException) -> BaseException:
    """Return the cause inside Spark's exception that a query stopped."""
    cause = getattr(error, "_cause", None)
    return cause if isinstance(error, StreamingQueryException) and cause is not None else error


def _fault_of_app(error: BaseException, *, query: str, at: Location) -> MillstreamError | None:
    """Find what restarts cannot help: a refused query, a function or an expression that fails."""
    text = str(error)
    trace = _RAISED.findall(text)
    if (missing := _NO_MODULE.search(text)) and _IMPORTING.search(trace[-1] if trace else text):
        return fault("PYTHON_MODULE_MISSING", at=at, query=query, module=missing[1])
    if trace:
        return _raised_by_function(text, trace[-1], query=query, at=at)
    if not isinstance(error, PySparkException):
        return None
    state = (error.getSqlState() or "")[:2]
    if state in _REFUSED_STATES:
        return refused(query, error, at)
    if state in _ROW_STATES:
        condition, place = error.getCondition() or state, query_line(error, at)
        return fault(
            "EXPRESSION_FAILED",
            at=place,
            dataset=query,
            condition=condition,
            cause=message_of(error),
        )
    return None


def _raised_by_function(
    text: str, cause: str, *, query: str, at: Location
) -> MillstreamError | None:
    name = cause.partition(":")[0]
    if name.endswith(_PASSING) or issubclass(getattr(builtins, name, Exception), OSError):
        return None
    frames = [(file, int(line)) for file, line in _FRAME.findall(text) if not is_library(file)]
    places = [Location(place_of(file), line) for file, line in frames]
    own = [place for place in places if place.file == at.file] or places or [at]
    if name.endswith(_OUT_OF_MEMORY):
        return fault("PYTHON_MEMORY", at=own[-1], query=query, cause=cause)
    arguments = text.partition(CALLED_WITH)[2].partition("\n")[0]
    called = f", called with {arguments}" if arguments else ""
    return fault("UDF_RAISED", at=own[-1], dataset=query, cause=cause, called=called)


def _condition_and_cause(error: BaseException) -> tuple[str, str]:
    """Return the most telling sentence: of a Python function, of Spark, or else the first line."""
    text = str(error)
    if raised := _RAISED.findall(text):
        return "PYTHON", raised[-1]
    if isinstance(error, Py4JError) and (sentence := _SENTENCE.search(text)):
        return sentence[1], sentence[2]
    if isinstance(error, PySparkException):
        return error.getCondition() or type(error).__name__, message_of(error)
    kind = "JVM" if isinstance(error, Py4JError) else type(error).__name__
    return kind, (text.strip().splitlines() or [""])[0]


def is_python_late(error: BaseException) -> bool:
    """Whether Spark did not wait any longer for Python to start."""
    return _PYTHON_LATE in str(error)


def lost_driver(log: str, *, within_s: float = 0) -> MillstreamError | None:
    """Return the error if the JVM has ended, or ends within so many seconds."""
    jvm = getattr(SparkContext._gateway, "proc", None)
    if jvm is None:
        return None
    try:
        jvm.wait(timeout=within_s)
    except subprocess.TimeoutExpired:
        return None
    return fault("DRIVER_LOST", log=log)


@contextmanager
def translating_full_disk(home: Home) -> Iterator[None]:
    """Turn errors of a full disk into STORAGE_FULL."""
    try:
        yield
    except Exception as error:
        if isinstance(error, MillstreamError) or not _is_full_disk(error):
            raise
        raise fault("STORAGE_FULL", home=str(home.path)) from error


def _is_full_disk(error: BaseException) -> bool:
    no_space = isinstance(error, OSError) and error.errno == errno.ENOSPC
    return no_space or _DISK_FULL in str(error)


def _fault_outside(
    error: BaseException, *, query: str, at: Location, home: Home
) -> MillstreamError | None:
    if _is_full_disk(error):
        return fault("STORAGE_FULL", home=str(home.path))
    if is_python_late(error):
        return fault("PYTHON_LATE", query=query, log=log_of_jvm(home.logs))
    text = str(error)
    if _PYTHON_DIED in text:
        crash = _CRASH.search(text)
        how = f"crashed: {crash[1]}" if crash else "was killed"
        return fault("PYTHON_DIED", at=at, query=query, how=how)
    if any(words in text for words in _BROKER_SILENT):
        return fault("BROKER_LOST", at=at, query=query)
    if _KAFKA_DATA_LOSS in text:
        cause = text.partition("Reason: ")[2].partition("\n")[0].rstrip(".")
        return fault("RECORDS_LOST", at=at, query=query, cause=cause)
    return None

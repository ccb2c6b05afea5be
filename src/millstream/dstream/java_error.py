"""Errors that programs catch as what pyspark.streaming raises, where Java raises it."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from millstream.errors import MillstreamError, UserCodeError
from millstream.errors.error import StreamArgumentError, StreamOrderError
from millstream.errors.page import read_page


class WithoutJavaError(Py4JJavaError):  # type: ignore[misc] # py4j has no types
    """What py4j raises for an exception of Java, without one."""

    java_exception: Any = None
    exception_cmd: Any = None

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)
        self.errmsg = message


class StreamStateError(StreamOrderError, WithoutJavaError):
    """What is an IllegalStateException of Java."""


class StreamRaisedError(UserCodeError, WithoutJavaError):
    """What is a SparkException of Java: a function raised."""


class StreamRequirementError(StreamArgumentError, IllegalArgumentException):
    """What is an IllegalArgumentException of Java."""


_KINDS: dict[type[MillstreamError], type[MillstreamError]] = {
    StreamOrderError: StreamStateError,
    UserCodeError: StreamRaisedError,
    StreamArgumentError: StreamRequirementError,
}


def as_of_java(error: MillstreamError) -> MillstreamError:
    """Return an error that is also what pyspark raises for it."""
    return _KINDS[type(error)](read_page(error.code), error.facts, error.at)

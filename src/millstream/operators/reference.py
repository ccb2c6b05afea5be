"""Reference data: rows from outside that a stream is joined with, read again when they change."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.declare.function import location_of_caller
from millstream.errors import MillstreamError, fault
from millstream.model.duration import parse_duration
from millstream.operators.build_context import build_context
from millstream.operators.fault import option_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from millstream.errors import Location

    Reader = Callable[[SparkSession], DataFrame]

_CALL = "ms.reference"
_LOG = "_delta_log"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_IN_A_FUNCTION = 'ms.reference(lambda spark: …, every="10 minutes")'


@dataclass(frozen=True, slots=True)
class Reference:
    """Where reference rows are, how they are read, and how a change is detected."""

    name: str
    """Identifies it, also after an edit of the function that asks for it."""
    path: str | None
    """A Delta table, a file, or a folder of files."""
    read: Reader = field(compare=False, repr=False)
    every: timedelta | None
    at: Location = field(compare=False)

    @property
    def is_delta(self) -> bool:
        """Whether the rows have versions of their own."""
        return self.path is not None and (Path(self.path) / _LOG).is_dir()

    def version(self, read_at_s: float = 0.0) -> str:
        """Return the version of the rows that are there now.

        Args:
            read_at_s: When they were read last, for rows that are read again by time alone.

        Raises:
            REFERENCE_UNREADABLE: There is nothing.
        """
        if self.path is None:
            age_s = time.time() - read_at_s
            over = self.every is not None and age_s >= self.every.total_seconds()
            return str(time.time() if over else read_at_s)
        try:
            if self.is_delta:
                from deltalake import DeltaTable

                table = DeltaTable(self.path)
                return f"{table.metadata().id} {table.version()}"
            return json.dumps(sorted(_stamps(Path(self.path))))
        except Exception as error:
            raise self.unreadable(error) from error

    def rows(self, spark: SparkSession) -> DataFrame:
        """Read the rows that are there now.

        Raises:
            REFERENCE_UNREADABLE: They cannot be read.
        """
        try:
            rows = self._delta(spark).load(self._place) if self.is_delta else self.read(spark)
            _ = rows.schema
        except Exception as error:
            raise self.unreadable(error) from error
        return rows

    def rows_of(self, spark: SparkSession, version: str) -> DataFrame:
        """Read the rows of a version of a Delta table.

        Raises:
            REFERENCE_UNREADABLE: They are no longer there.
        """
        from deltalake import DeltaTable

        made, _, number = version.partition(" ")
        try:
            is_same = str(DeltaTable(self._place, int(number)).metadata().id) == made
            rows = self._delta(spark).option("versionAsOf", number).load(self._place)
        except Exception as error:
            raise self.unreadable(error) from error
        if not is_same:
            cause = f"the table was created again, and version {number} was another"
            raise self._unreadable(cause)
        return rows

    @property
    def _place(self) -> str:
        return os.path.abspath(self.path or "")

    def _delta(self, spark: SparkSession) -> DataFrameReader:
        return spark.read.format("delta")

    def unreadable(self, error: Exception) -> MillstreamError:
        """Return the error of rows that cannot be read."""
        message = str(error).partition("\n")[0]
        return self._unreadable(f"{type(error).__name__}: {message}")

    def _unreadable(self, cause: str) -> MillstreamError:
        return fault(
            "REFERENCE_UNREADABLE", at=self.at, what=self.path or "the function", cause=cause
        )


def is_from_outside(rows: DataFrame) -> bool:
    """Return whether rows have none of the inputs of the function that is being called.

    In a stream such rows are a batch. Without a known caller, nothing is from outside.
    """
    from millstream.spark.nodes import leaves_of

    context = build_context()
    inputs = context.inputs if context else ()
    return bool(inputs) and all(leaves_of(rows).isdisjoint(leaves_of(one)) for one in inputs)


def reference(
    what: str | PathLike[str] | Reader,
    *,
    format: str | None = None,  # noqa: A002 - Spark's word
    schema: str | None = None,
    every: str | None = None,
    options: dict[str, Any] | None = None,
) -> DataFrame:
    """Return reference rows, to join with a stream inside the function of a table.

    While the app runs they are read again when they change: a Delta table when it has a new
    version, files when one is added, replaced or removed, what a function reads when `every` has
    passed. The stream then continues with the new rows in the next batch; a batch that is
    retried sees the rows that it saw first. In a batch they are read as they are.

    Args:
        what: The path of a Delta table, of a file or of a folder of files, on a disk of this
            machine; or a function of the Spark session that reads rows from anywhere,
            such as a database or an object store.
        format: How files are read, in Spark's words: `csv`, `json`, `parquet`.
        schema: The columns of files; parquet knows its own.
        every: How often a function is called again, such as `"10 minutes"`.
        options: Spark's own, for files.

    Raises:
        DeclarationError: An option is missing or not valid, or the rows cannot be read.
    """
    from pyspark.sql import SparkSession

    at = location_of_caller()
    declared = _declared(what, format, schema, every, options or {}, at)
    context = build_context()
    if context is not None and (bound := context.bound_rows(declared)) is not None:
        return bound
    inputs = context.inputs if context else ()
    return declared.rows(inputs[0].sparkSession if inputs else SparkSession.builder.getOrCreate())


def _declared(
    what: str | PathLike[str] | Reader,
    kind: str | None,
    schema: str | None,
    every: str | None,
    options: dict[str, Any],
    at: Location,
) -> Reference:
    def refuse(option: str, got: object, why: str, instead: str) -> MillstreamError:
        return option_fault(_CALL, option, got, why=why, instead=instead, at=at)

    if isinstance(what, str | PathLike):
        path = os.fspath(what)
        if _ADDRESS.match(path):
            why = "a path is looked at on the disks of this machine, and this is an address"
            raise refuse("what", path, why, f"read it in a function: {_IN_A_FUNCTION}")
        if every is not None:
            raise refuse("every", every, "a path is read again when it changes", "leave it out")

        def read(spark: SparkSession) -> DataFrame:
            reader = spark.read.format(kind or "").options(**options)
            return (reader.schema(schema) if schema else reader).load(os.path.abspath(path))

        declared = Reference(_name(path, kind, schema, options), path, read, None, at)
        if kind is None and not declared.is_delta:
            why = f"{path!r} is not a Delta table"
            raise refuse("format", None, why, 'say how its files are read: format="csv"')
        return declared
    if not callable(what):
        why = "it is neither a path nor a function, so it cannot be read again"
        instead = f"have a function read it: {_IN_A_FUNCTION}; or join with it without {_CALL}"
        raise refuse("what", what, why, instead)
    if every is None:
        why = "when the function is to be called again is not known"
        raise refuse("every", None, why, 'say how often: every="10 minutes"')
    try:
        length = parse_duration(every)
    except (ValueError, TypeError):
        instead = 'say how often: every="10 minutes"'
        raise refuse("every", every, "that is not a length of time", instead) from None
    return Reference(getattr(what, "__qualname__", "a function"), None, what, length, at)


def _name(path: str, *how: object) -> str:
    """Name files by their path and a hash of how they are read: the options may hold a secret.

    >>> _name("a.csv", "csv", "id INT", {}) == _name("a.csv", "csv", "id BIGINT", {})
    False
    """
    return f"{path} {sha256(repr(how).encode()).hexdigest()[:12]}"


def _stamps(path: Path) -> Iterator[tuple[str, int, int]]:
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
    if not path.exists():
        raise FileNotFoundError(str(path))
    for file in files:
        if not file.name.startswith((".", "_")):
            stat = file.stat()
            yield str(file.relative_to(path.parent)), stat.st_size, stat.st_mtime_ns

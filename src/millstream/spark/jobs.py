"""The jobs that Spark runs at a moment: whose they are, and how far."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

LONG_S = 2.0
"""Jobs that have run for less are not looked at: to ask Spark takes some milliseconds."""


@dataclass(frozen=True, slots=True)
class LongJob:
    """A job that has run for a while."""

    query: str
    done: int
    """How many of its tasks have ended."""
    tasks: int
    rows: int
    """What its tasks have read so far; Spark counts those of a task at its end, or every 10 s."""
    seconds: float


def long_jobs(spark: SparkSession, least_s: float = LONG_S) -> tuple[LongJob, ...]:
    """Return the jobs of queries that run now and have run for some seconds."""
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    found: list[LongJob] = []
    for number in spark.sparkContext.statusTracker().getActiveJobsIds():
        # A job may be gone by now.
        with contextlib.suppress(Py4JJavaError):
            found += _long_job(store, store.job(number), least_s)
    return tuple(found)


def name_jobs(spark: SparkSession, query: str) -> None:
    """Name the jobs that this thread starts from now on after a query, as Spark does of streams."""
    spark.sparkContext.setJobDescription(query)


def _long_job(store: Any, job: Any, least_s: float) -> Iterator[LongJob]:
    began, description = job.submissionTime(), job.description()
    if began.isEmpty() or description.isEmpty():
        return
    seconds = time.time() - began.get().getTime() / 1000
    if seconds >= least_s:
        # Spark's own, of a batch, has more lines: the ids of the query and the batch.
        query = description.get().strip().partition("\n")[0]
        done = job.numCompletedTasks() + job.numSkippedTasks()
        rows = sum(_rows_read(store, job.stageIds()))
        yield LongJob(query, done, job.numTasks(), rows, seconds)


def _rows_read(store: Any, stages: Any) -> Iterator[int]:
    for place in range(stages.size()):
        # A stage that was skipped has no attempts.
        with contextlib.suppress(Py4JJavaError):
            yield store.lastStageAttempt(stages.apply(place)).inputRecords()

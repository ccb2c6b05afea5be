"""From a declared function to a DataFrame: the one place where a user's function is called."""

from __future__ import annotations

import sys
import traceback
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, PySparkException, QueryContextType
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from millstream.build.refusal import raised, refused
from millstream.declare.dataset import described
from millstream.declare.notebook import place_of
from millstream.declare.sql_function import SqlFunction
from millstream.errors import Location, MillstreamError, fault, relative
from millstream.model.dataset import FunctionalStream, Model, Source, View
from millstream.operators.build_context import BuildContext, BuildNotes, BuildOptions, calling
from millstream.plan.queries import event_time_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import FrameType

    from millstream.dstream.grid import TimedRows
    from millstream.model.dataset import Serve, Table
    from millstream.model.graph import Graph
    from millstream.model.state import Kept
    from millstream.operators.build_context import Hold, MakeWarning
    from millstream.operators.reference import Reference

    Read = Callable[[str], DataFrame]
    """Returns the rows of a source or table, by its name."""
    Made = tuple[tuple[Location, DataFrame], ...]
    """Every DataFrame that a line of the app makes, in this order."""

DEFAULT = BuildOptions()


@dataclass(frozen=True, slots=True)
class Built:
    """The answer of a dataset, and what is known of how it is made."""

    frame: DataFrame
    states: tuple[Kept, ...]
    """What its functions of keys and its operators keep."""
    may_raise: bool
    """Whether it calls functions whose rows are quarantined if they raise."""
    holds: tuple[Hold, ...]
    """How long its operators hold rows back."""
    references: Mapping[str, Reference]
    """The reference data that it reads, by name."""
    behind_us: int
    """By how much its rows are older than the time up to which it is complete."""
    forever: tuple[MakeWarning, ...]
    """Warnings about state that it never forgets."""
    complete: Callable[[DataFrame], DataFrame] | None
    """What completes the rows of each batch of a stream; None if they are complete."""
    made: Made
    """Which line made which DataFrame on the way to it, if asked for."""


def build(
    graph: Graph, name: str, read: Read, options: BuildOptions = DEFAULT, *, traced: bool = False
) -> Built:
    """Build the answer of a table, view or serve from what it reads; views are inlined.

    Args:
        graph: What is declared.
        name: Of the dataset.
        read: Returns its inputs: streams, snapshots, samples, or rows without data.
        options: How operators inside its function behave.
        traced: Whether to find out which line makes which operator, or starts a query, which
            makes calls slower.

    Raises:
        UserCodeError: The function raised, was refused by Spark, or returned no DataFrame.
    """
    notes = BuildNotes()
    tracing = _traced(graph, name) if traced else nullcontext[list[tuple[Location, DataFrame]]]([])
    with tracing as made:
        frame = _answer(graph, name, read, options, notes)
    return Built(
        frame,
        tuple(notes.states),
        bool(notes.raising),
        tuple(notes.holds),
        MappingProxyType(notes.references),
        max(notes.behind_us, default=0),
        tuple(notes.forever),
        next(iter(notes.completing), None),
        tuple(made),
    )


def _answer(
    graph: Graph, name: str, read: Read, options: BuildOptions, notes: BuildNotes
) -> DataFrame:
    dataset = graph.datasets[name]
    assert not isinstance(dataset, Source)
    inputs, models = _inputs(graph, name, read, options, notes)
    try:
        with calling(BuildContext(inputs, options, notes, models)):
            if isinstance(dataset, FunctionalStream):
                frame = _of_batches(graph, dataset, inputs, options)
            else:
                frame = dataset.build(*inputs)
            if isinstance(dataset, Model) and isinstance(frame, DataFrame):
                frame = _learnt(dataset, frame)
    except MillstreamError:
        raise
    except AnalysisException as error:
        raise refused(name, error, _query_line(error, dataset)) from error
    except Exception as error:
        at = _user_line(error, dataset.at)
        raise raised(name, error, at, [c for rows in inputs for c in rows.columns]) from error
    if not isinstance(frame, DataFrame):
        raise fault("NOT_A_DATAFRAME", at=dataset.at, dataset=name, got=described(frame))
    return frame


def _inputs(
    graph: Graph, name: str, read: Read, options: BuildOptions, notes: BuildNotes
) -> tuple[list[DataFrame], dict[str, tuple[Model, DataFrame]]]:
    """Return what a dataset's function is called with, and the models among it."""
    inputs: list[DataFrame] = []
    models: dict[str, tuple[Model, DataFrame]] = {}
    for reads in graph.datasets[name].reads:
        match graph.datasets[reads]:
            case View():
                inputs.append(_answer(graph, reads, read, options, notes))
            case Model() as model:
                table = read(reads)
                models[reads] = (model, table)
                inputs.append(_scored_rows(reads, table))
            case _:
                inputs.append(read(reads))
    return inputs, models


def timed_inputs(graph: Graph, stream: FunctionalStream, read: Read) -> tuple[TimedRows, ...]:
    """Return the rows that a functional stream reads, each with its event time.

    Raises:
        STREAM_TIME: The event time of an input is not known.
    """
    inputs, _ = _inputs(graph, stream.name, read, DEFAULT, BuildNotes())
    return _timed(graph, stream, inputs)


def _timed(
    graph: Graph, stream: FunctionalStream, inputs: Sequence[DataFrame]
) -> tuple[TimedRows, ...]:
    # Slow to import, and few apps have such programs.
    from millstream.dstream.grid import TimedRows

    found = []
    for name, frame in zip(stream.reads, inputs, strict=True):
        known = event_time_of(graph, name)
        if known is None or known.column not in frame.columns:
            why = "has no event time" if known is None else f"has no column {known.column!r}"
            raise fault("STREAM_TIME", at=stream.at, stream=stream.name, reads=name, why=why)
        found.append(TimedRows(frame, known.column))
    return tuple(found)


def _of_batches(
    graph: Graph, stream: FunctionalStream, inputs: Sequence[DataFrame], options: BuildOptions
) -> DataFrame:
    from millstream.dstream.grid import answer

    timed = _timed(graph, stream, inputs)
    return answer(inputs[0].sparkSession, stream, timed, options.complete_us)


def _learnt(model: Model, rows: DataFrame) -> DataFrame:
    # Slow to import, and commands that only draw a graph build nothing.
    from millstream.learn.returns import returns_of
    from millstream.learn.rows import learnt

    return learnt(model, rows, returns_of(model, rows))


def _scored_rows(name: str, table: DataFrame) -> DataFrame:
    from millstream.learn.rows import scored_rows

    return scored_rows(name, table)


@contextmanager
def _traced(graph: Graph, name: str) -> Iterator[list[tuple[Location, DataFrame]]]:
    """Collect every DataFrame that a line or a query of the app makes, in this order.

    Raises:
        QUERY_STARTED: A line has started a query; it is stopped.
    """
    files = {dataset.at.file for dataset in graph.declared}
    made: list[tuple[Location, DataFrame]] = []
    started: list[tuple[Location, Any]] = []

    def look(frame: FrameType, event: str, value: Any) -> None:
        if event != "return" or frame.f_back is None:
            return
        is_query = isinstance(value, StreamingQuery)
        if not is_query and not isinstance(value, DataFrame):
            return
        if frame.f_code is SqlFunction.__call__.__code__:
            made.append((frame.f_locals["self"].place(1), value))
        elif (file := relative(frame.f_back.f_code.co_filename)) in files:
            kept = started if is_query else made
            kept.append((Location(file, frame.f_back.f_lineno), value))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield made
    finally:
        sys.setprofile(before)
        for _, query in started:
            query.stop()
    for at, _ in started:
        raise fault("QUERY_STARTED", at=at, dataset=name)


def query_line(error: PySparkException, declared: Location) -> Location:
    """Return the line of the app that made the expression Spark names; or where it is declared."""
    for context in error.getQueryContext():
        if context.contextType() is QueryContextType.DataFrame:
            file, _, line = context.callSite().rpartition(":")
            if line.isdigit() and place_of(file) == declared.file:
                return Location(declared.file, int(line))
    return declared


def _query_line(error: AnalysisException, dataset: Table | View | Serve) -> Location:
    """Return the line that Spark means: of a query in SQL, or of the function that made it."""
    if not isinstance(dataset.build, SqlFunction):
        return _user_line(error, dataset.at)
    for context in error.getQueryContext():
        if context.contextType() is QueryContextType.SQL and context.startIndex() >= 0:
            return dataset.build.place_of(context.startIndex())
    return dataset.at


def _user_line(error: BaseException, declared: Location) -> Location:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if place_of(frame.filename) == declared.file]
    return Location(declared.file, lines[-1] or declared.line) if lines else declared

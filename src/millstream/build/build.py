"""From a declared function to a DataFrame: the one place where a user's function is called."""

from __future__ import annotations

import sys
import traceback
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, PySparkException, QueryContextType
from pyspark.sql import DataFrame

from millstream.declare import SqlFunction, described
from millstream.declare.cell import place_of
from millstream.errors import Location, MillstreamError, fault, relative
from millstream.model.dataset import Source, View
from millstream.operators.build_context import BuildContext, BuildNotes, BuildOptions, calling
from millstream.spark.words import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from millstream.model.dataset import Serve, Table
    from millstream.model.graph import Graph
    from millstream.model.state import Kept
    from millstream.operators.build_context import Hold, MakeWarning

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
    """Whether it calls functions whose rows are put aside if they raise."""
    holds: tuple[Hold, ...]
    """How long its operators hold rows back."""
    behind_us: int
    """By how much its rows are older than the time up to which it is complete."""
    forever: tuple[MakeWarning, ...]
    """Warnings about state that it never forgets."""
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
        traced: Whether to find out which line makes which operator, which makes calls slower.

    Raises:
        UserCodeError: The function raised, was refused by Spark, or returned no DataFrame.
    """
    notes = BuildNotes()
    tracing = _traced(graph) if traced else nullcontext[list[tuple[Location, DataFrame]]]([])
    with tracing as made:
        frame = _answer(graph, name, read, options, notes)
    return Built(
        frame,
        tuple(notes.states),
        bool(notes.raising),
        tuple(notes.holds),
        max(notes.behind_us, default=0),
        tuple(notes.forever),
        tuple(made),
    )


def _answer(
    graph: Graph, name: str, read: Read, options: BuildOptions, notes: BuildNotes
) -> DataFrame:
    dataset = graph.datasets[name]
    assert not isinstance(dataset, Source)
    inputs = [
        _answer(graph, n, read, options, notes) if isinstance(graph.datasets[n], View) else read(n)
        for n in dataset.reads
    ]
    try:
        with calling(BuildContext(inputs, options, notes)):
            frame = dataset.build(*inputs)
    except MillstreamError:
        raise
    except AnalysisException as error:
        raise refused(name, error, _query_line(error, dataset)) from error
    except Exception as error:
        at = _user_line(error, dataset.at)
        cause = f"{type(error).__name__}: {error}"
        raise fault("FUNCTION_RAISED", at=at, dataset=name, cause=cause) from error
    if not isinstance(frame, DataFrame):
        raise fault("NOT_A_DATAFRAME", at=dataset.at, dataset=name, got=described(frame))
    return frame


@contextmanager
def _traced(graph: Graph) -> Iterator[list[tuple[Location, DataFrame]]]:
    """Collect every DataFrame that a line or a query of the app makes, in this order."""
    files = {dataset.at.file for dataset in graph.declared}
    made: list[tuple[Location, DataFrame]] = []

    def look(frame: FrameType, event: str, value: Any) -> None:
        if event != "return" or not isinstance(value, DataFrame) or frame.f_back is None:
            return
        if frame.f_code is SqlFunction.__call__.__code__:
            made.append((frame.f_locals["self"].place(1), value))
        elif (file := relative(frame.f_back.f_code.co_filename)) in files:
            made.append((Location(file, frame.f_back.f_lineno), value))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield made
    finally:
        sys.setprofile(before)


_REFUSED_FIXES = {
    "Redefining watermark": "remove this withWatermark and use the event time of the source; or, "
    "for another event time, drop the source's from the table that is read here",
    "More than one event time columns": "drop all but one of these columns from that input before "
    "the join; a window made from the event time is an event time as well",
    "without watermark": "give the source a watermark (watermark='10 minutes') and group by a "
    "window of its event time, or keep the answer by key: mode='update', key=[…]",
}
"""What to do about what Spark refuses most often, by a phrase of its sentence."""


def refused(name: str, error: PySparkException, at: Location) -> MillstreamError:
    """Say that Spark refuses a query, in Spark's words."""
    condition = error.getCondition() or type(error).__name__
    cause = words_of(error)
    fixes = (fix for phrase, fix in _REFUSED_FIXES.items() if phrase in cause)
    instead = next(fixes, "mend the query; `millstream check` tries it without data")
    return fault(
        "QUERY_REFUSED", at=at, dataset=name, condition=condition, cause=cause, instead=instead
    )


def query_line(error: PySparkException, declared: Location) -> Location:
    """Say which line of the app made the expression that Spark names; or where it is declared."""
    for context in error.getQueryContext():
        if context.contextType() is QueryContextType.DataFrame:
            file, _, line = context.callSite().rpartition(":")
            if line.isdigit() and place_of(file) == declared.file:
                return Location(declared.file, int(line))
    return declared


def _query_line(error: AnalysisException, dataset: Table | View | Serve) -> Location:
    """Say which line Spark means: of a query in SQL, or of the function that made it."""
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

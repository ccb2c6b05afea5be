"""How users say it: plain functions and SQL become frozen datasets."""

from __future__ import annotations

import inspect
import itertools
import re
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

from millstream.declare.cell import place_of
from millstream.errors import Location, closest, fault, listed
from millstream.memo import remembered
from millstream.model.dataset import (
    Alert,
    Connector,
    Expectations,
    Mode,
    OnViolation,
    Serve,
    Sink,
    Source,
    Table,
    View,
)
from millstream.model.destination import Destination

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame
    from sqlglot import Token, exp
    from sqlglot.errors import SqlglotError

_NAMING = threading.Lock()
"""A session has one frame by each name, and recomputed tables are answered in threads."""
_UNCLOSED = re.compile(r"(Missing .+) from \d+:(\d+)")


def location_of(function: Callable[..., Any]) -> Location:
    """Say where a function stands."""
    code = inspect.unwrap(function).__code__
    return Location(place_of(code.co_filename), code.co_firstlineno)


def location_of_caller(depth: int = 2) -> Location:
    """Say which line called the function that calls this one."""
    frame = sys._getframe(depth)
    return Location(place_of(frame.f_code.co_filename), frame.f_lineno)


def inputs_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Name the datasets a function reads: its parameters.

    >>> def clean(readings, devices): ...
    >>> inputs_of(clean)
    ('readings', 'devices')
    """
    return tuple(inspect.signature(function).parameters)


class SourceOptions(TypedDict, total=False):
    """What can be said of a source, besides its connector."""

    name: str
    event_time: str
    watermark: str
    future: str
    late: Literal["keep", "fail"]
    idle: str
    live: bool
    expect: Mapping[str, str]
    evolve: bool
    trigger: str


class ViewOptions(TypedDict, total=False):
    """What can be said of a view, besides its query."""

    name: str


class TableOptions(TypedDict, total=False):
    """What can be said of a table, besides its query."""

    name: str
    mode: Mode
    key: Sequence[str]
    partition_by: Sequence[str]
    expect: Mapping[str, str]
    on_violation: OnViolation
    evolve: bool
    trigger: str


class ServeOptions(TypedDict, total=False):
    """What can be said of a served answer, besides its query."""

    to: Required[Sink | Sequence[Sink]]
    name: str
    mode: Mode
    trigger: str


class AlertOptions(TypedDict, total=False):
    """What can be said of an alert, besides its query."""

    to: Required[Destination | Sequence[Destination]]
    name: str
    key: Sequence[str]
    cooldown: str
    event_time: str
    retry_for: str
    trigger: str


def source_of(function: Callable[[], object], options: SourceOptions) -> Source:
    """Make a source of a function that returns a connector.

    Raises:
        SOURCE_PARAMETERS: The function wants arguments.
        NOT_A_CONNECTOR: It returns something else.
        UNKNOWN_OPTION: An option does not exist.
    """
    at, given = location_of(function), dict[str, Any](options)
    name = str(given.pop("name", function.__name__))
    _refuse_unknown(given, SourceOptions, dataset=name, at=at)
    if parameters := inputs_of(function):
        raise fault("SOURCE_PARAMETERS", at=at, source=name, parameters=", ".join(parameters))
    connector = function()
    if not isinstance(connector, Connector):
        raise fault("NOT_A_CONNECTOR", at=at, source=name, got=described(connector))
    return connected_source(name, connector, at, given)


def connected_source(
    name: str, connector: Connector, at: Location, options: Mapping[str, Any]
) -> Source:
    """Make a source of a connector."""
    expect = Expectations(dict(options.get("expect", {})))
    return Source(name=name, connector=connector, at=at, **{**options, "expect": expect})


def table_of(function: Callable[..., object], options: TableOptions) -> Table:
    """Make a table of a function from DataFrames to a DataFrame.

    Raises:
        UNKNOWN_OPTION: An option does not exist.
    """
    name = options.get("name", function.__name__)
    return built_table(name, function, inputs_of(function), location_of(function), options)


def serve_of(function: Callable[..., object], options: ServeOptions) -> Serve:
    """Make a served answer of a function from DataFrames to a DataFrame.

    Raises:
        NOT_A_SINK: It is served to something else.
        UNKNOWN_OPTION: An option does not exist.
    """
    name, at = options.get("name", function.__name__), location_of(function)
    _refuse_unknown(options, ServeOptions, dataset=name, at=at)
    given: object = options.get("to", ())
    sinks = tuple(given) if isinstance(given, list | tuple) else (given,)
    for sink in sinks or (None,):
        if not isinstance(sink, Sink):
            raise fault("NOT_A_SINK", at=at, serve=name, got=described(sink))
    mode, trigger = options.get("mode"), options.get("trigger")
    return Serve(name, inputs_of(function), function, at, sinks, mode=mode, trigger=trigger)


def alert_of(function: Callable[..., object], options: AlertOptions) -> Alert:
    """Make an alert of a function from DataFrames to a DataFrame.

    Raises:
        NOT_A_DESTINATION: It is told to something else.
        UNKNOWN_OPTION: An option does not exist.
    """
    name, at = options.get("name", function.__name__), location_of(function)
    _refuse_unknown(options, AlertOptions, dataset=name, at=at)
    given: object = options.get("to", ())
    to = tuple(given) if isinstance(given, list | tuple) else (given,)
    for destination in to or (None,):
        if not isinstance(destination, Destination):
            raise fault("NOT_A_DESTINATION", at=at, alert=name, got=described(destination))
    return Alert(
        name,
        inputs_of(function),
        function,
        at,
        key=_names(options.get("key", ())),
        trigger=options.get("trigger"),
        to=to,
        cooldown=options.get("cooldown"),
        event_time=options.get("event_time"),
        retry_for=options.get("retry_for", "1 day"),
    )


def view_of(function: Callable[..., object], options: ViewOptions) -> View:
    """Make a view of a function from DataFrames to a DataFrame.

    Raises:
        UNKNOWN_OPTION: An option does not exist.
    """
    name, at = options.get("name", function.__name__), location_of(function)
    _refuse_unknown(options, ViewOptions, dataset=name, at=at)
    return View(name, inputs_of(function), function, at)


def sql_table_of(name: str, query: str, at: Location, options: TableOptions) -> Table:
    """Make a table of a query.

    Raises:
        SQL_REFUSED: The text is not one query.
        UNKNOWN_OPTION: An option does not exist.
    """
    build = SqlFunction.of(query, dataset=name, place=lambda _: at)
    return built_table(name, build, build.reads, at, options)


def sql_view_of(name: str, query: str, at: Location) -> View:
    """Make a view of a query.

    Raises:
        SQL_REFUSED: The text is not one query.
    """
    build = SqlFunction.of(query, dataset=name, place=lambda _: at)
    return View(name, build.reads, build, at)


def built_table(
    name: str,
    build: Callable[..., object],
    reads: tuple[str, ...],
    at: Location,
    options: TableOptions,
) -> Table:
    """Make a table of whatever builds its answer.

    Raises:
        UNKNOWN_OPTION: An option does not exist.
    """
    _refuse_unknown(options, TableOptions, dataset=name, at=at)
    return Table(
        name=name,
        reads=reads,
        build=build,
        at=at,
        mode=options.get("mode", "append"),
        key=_names(options.get("key", ())),
        partition_by=_names(options.get("partition_by", ())),
        expect=Expectations(
            dict(options.get("expect", {})), options.get("on_violation", "quarantine")
        ),
        evolve=options.get("evolve", False),
        trigger=options.get("trigger"),
    )


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _refuse_unknown(
    options: Mapping[str, object], known: type, *, dataset: str, at: Location
) -> None:
    for option in options:
        if option not in known.__annotations__:
            names = tuple(known.__annotations__)
            raise fault(
                "UNKNOWN_OPTION",
                at=at,
                dataset=dataset,
                option=option,
                nearest=closest(option, names),
                known=listed(names),
            )


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A query as a function: DataFrames in, in the order of `reads`, DataFrame out."""

    query: str
    reads: tuple[str, ...]
    place: Callable[[int], Location]
    """Says where a line of the query stands."""

    @staticmethod
    def of(query: str, *, dataset: str, place: Callable[[int], Location]) -> SqlFunction:
        """Make a function of a query.

        Raises:
            SQL_REFUSED: The text is not one query in Spark's dialect.
        """
        return SqlFunction(query, tuple(sql_inputs(query, dataset=dataset, place=place)), place)

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """Give the answer to the query."""
        spark = frames[0].sparkSession
        with _NAMING:
            for name, frame in zip(self.reads, frames, strict=True):
                frame.createOrReplaceTempView(name)
            try:
                return spark.sql(self.query)
            finally:
                for name in self.reads:
                    spark.catalog.dropTempView(name)

    def place_of(self, offset: int) -> Location:
        """Say where a character of the query stands."""
        return self.place(self.query.count("\n", 0, offset) + 1)


def sql_inputs(query: str, *, dataset: str, place: Callable[[int], Location]) -> Mapping[str, int]:
    r"""Name the datasets a query reads: its FROM names, without those it defines itself.

    Args:
        query: The text.
        dataset: What it is the query of.
        place: Says where a line of it stands.

    Returns:
        The names, each with the line of the query that names it first.

    Raises:
        SQL_REFUSED: The text is not one query in Spark's dialect.

    >>> query = "WITH x AS (SELECT 1)\nSELECT * FROM a JOIN x"
    >>> sql_inputs(query, dataset="d", place=lambda line: Location("d.sql", line))
    {'a': 2}
    """
    return remembered(query, lambda: _found_inputs(query, dataset, place), by=("sqlglot", __name__))


def _found_inputs(query: str, dataset: str, place: Callable[[int], Location]) -> Mapping[str, int]:
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        statements = [s for s in _parsed(query) if s is not None]
    except SqlglotError as error:
        why, line = _explained(error, query)
        raise fault("SQL_REFUSED", at=place(line), dataset=dataset, why=why) from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        got = f"{len(statements)} statements" if len(statements) != 1 else statements[0].key.upper()
        line = _line(statements[-1]) if statements else 1
        raise fault("SQL_REFUSED", at=place(line), dataset=dataset, why=f"got {got}")
    defined = {cte.alias for cte in statements[0].find_all(exp.CTE)}
    found: dict[str, int] = {}
    for table in statements[0].find_all(exp.Table):
        if table.name and not table.db and table.name not in defined:
            found.setdefault(table.name, _line(table))
    return found


def sql_tokens(query: str) -> list[Token]:
    """Cut a query into words, without its comments.

    Raises:
        SqlglotError: A quotation does not end.
    """
    from sqlglot import Dialect, TokenType

    tokens = Dialect.get_or_raise("spark").tokenize(query)
    for word, following in itertools.pairwise(tokens):
        # To sqlglot `GROUP BY window(at, '1 minute')` is the WINDOW clause, without its name.
        if word.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
            word.token_type = TokenType.VAR
    return tokens


def _parsed(query: str) -> Sequence[exp.Expr | None]:
    from sqlglot import Dialect

    return Dialect.get_or_raise("spark").parser().parse(sql_tokens(query), query)


def _line(node: exp.Expr) -> int:
    """Give the line of the first name in a part of a query."""
    return min((n.meta["line"] for n in node.walk() if "line" in n.meta), default=1)


def _explained(error: SqlglotError, query: str) -> tuple[str, int]:
    """Say why a text cannot be read, and at which of its lines."""
    for found in getattr(error, "errors", ()):
        told = str(found["description"]).partition(" but got <")[0]
        return f"{told}, near {found['highlight']!r}", found["line"] or 1
    told = str(error.__cause__ or error)
    if unclosed := _UNCLOSED.fullmatch(told):
        # sqlglot says at which line the text ends, and at which character the quotation began.
        return unclosed[1], query.count("\n", 0, int(unclosed[2])) + 1
    return told.splitlines()[0], 1


def described(value: object) -> str:
    """Say what a value is, in an error.

    >>> described(None), described(3)
    ('None', 'int')
    """
    return "None" if value is None else type(value).__name__

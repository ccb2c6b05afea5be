"""How users say it: plain functions and SQL become frozen datasets."""

from __future__ import annotations

import inspect
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from millstream.errors import (
    Location,
    NotAConnectorError,
    SourceParametersError,
    SqlRefusedError,
    UnknownOptionError,
)
from millstream.model.dataset import (
    Connector,
    Expectations,
    Mode,
    OnViolation,
    Source,
    Table,
    View,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame
    from sqlglot import exp


def location_of(function: Callable[..., Any]) -> Location:
    """Say where a function stands."""
    code = inspect.unwrap(function).__code__
    return Location(relative(code.co_filename), code.co_firstlineno)


def location_of_caller(depth: int = 2) -> Location:
    """Say which line called the function that calls this one."""
    frame = sys._getframe(depth)
    return Location(relative(frame.f_code.co_filename), frame.f_lineno)


def relative(file: str) -> str:
    """Shorten a path that lies below the working folder."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


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
    live: bool
    expect: Mapping[str, str]
    evolve: bool
    trigger: str


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


def source_of(function: Callable[[], object], options: SourceOptions) -> Source:
    """Make a source of a function that returns a connector.

    Raises:
        SourceParametersError: The function wants arguments.
        NotAConnectorError: It returns something else.
        UnknownOptionError: An option does not exist.
    """
    at, given = location_of(function), dict[str, Any](options)
    name = str(given.pop("name", function.__name__))
    _refuse_unknown(given, SourceOptions, dataset=name, at=at)
    if parameters := inputs_of(function):
        raise SourceParametersError(name, parameters=parameters, at=at)
    connector = function()
    if not isinstance(connector, Connector):
        raise NotAConnectorError(name, got=described(connector), at=at)
    given["expect"] = Expectations(dict(options.get("expect", {})))
    return Source(name=name, connector=connector, at=at, **given)


def table_of(function: Callable[..., object], options: TableOptions) -> Table:
    """Make a table of a function from DataFrames to a DataFrame.

    Raises:
        UnknownOptionError: An option does not exist.
    """
    name = options.get("name", function.__name__)
    return _table(name, function, inputs_of(function), location_of(function), options)


def view_of(function: Callable[..., object]) -> View:
    """Make a view of a function from DataFrames to a DataFrame."""
    return View(function.__name__, inputs_of(function), function, location_of(function))


def sql_table_of(name: str, query: str, at: Location, options: TableOptions) -> Table:
    """Make a table of a query.

    Raises:
        SqlRefusedError: The text is not one query.
        UnknownOptionError: An option does not exist.
    """
    reads = sql_inputs(query, dataset=name, at=at)
    return _table(name, sql_function(query, reads), reads, at, options)


def sql_view_of(name: str, query: str, at: Location) -> View:
    """Make a view of a query.

    Raises:
        SqlRefusedError: The text is not one query.
    """
    reads = sql_inputs(query, dataset=name, at=at)
    return View(name, reads, sql_function(query, reads), at)


def _table(
    name: str,
    build: Callable[..., object],
    reads: tuple[str, ...],
    at: Location,
    options: TableOptions,
) -> Table:
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
            raise UnknownOptionError(
                option, dataset=dataset, known=tuple(known.__annotations__), at=at
            )


def sql_inputs(query: str, *, dataset: str, at: Location) -> tuple[str, ...]:
    """Name the datasets a query reads: its FROM names, without those it defines itself.

    Raises:
        SqlRefusedError: The text is not one query in Spark's dialect.

    >>> sql_inputs("WITH x AS (SELECT 1) SELECT * FROM a JOIN x", dataset="d", at=Location("f", 1))
    ('a',)
    """
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        statements = [s for s in _parsed(query) if s is not None]
    except SqlglotError as error:
        why = str(error).splitlines()[0] if str(error) else "it cannot be read"
        raise SqlRefusedError(dataset, why=why, at=at) from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        got = f"{len(statements)} statements" if len(statements) != 1 else statements[0].key.upper()
        raise SqlRefusedError(dataset, why=f"got {got}", at=at)
    defined = {cte.alias for cte in statements[0].find_all(exp.CTE)}
    named = [t.name for t in statements[0].find_all(exp.Table) if t.name and not t.db]
    return tuple(dict.fromkeys(name for name in named if name not in defined))


def _parsed(query: str) -> Sequence[exp.Expr | None]:
    from sqlglot import Dialect, TokenType

    spark = Dialect.get_or_raise("spark")
    tokens = spark.tokenize(query)
    for word, following in itertools.pairwise(tokens):
        # To sqlglot `GROUP BY window(at, '1 minute')` is the WINDOW clause, without its name.
        if word.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
            word.token_type = TokenType.VAR
    return spark.parser().parse(tokens, query)


def sql_function(query: str, reads: Sequence[str]) -> Callable[..., DataFrame]:
    """Make a function of a query: DataFrames in, in the order of `reads`, DataFrame out."""

    def build(*frames: DataFrame) -> DataFrame:
        spark = frames[0].sparkSession
        for name, frame in zip(reads, frames, strict=True):
            frame.createOrReplaceTempView(name)
        try:
            return spark.sql(query)
        finally:
            for name in reads:
                spark.catalog.dropTempView(name)

    return build


def described(value: object) -> str:
    """Say what a value is, in an error.

    >>> described(None), described(3)
    ('None', 'int')
    """
    return "None" if value is None else type(value).__name__

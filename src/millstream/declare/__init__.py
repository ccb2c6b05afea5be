"""How users say it: plain functions and SQL become frozen datasets."""

from __future__ import annotations

import copy
import inspect
import itertools
import re
import sys
import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

from millstream.declare.event_time import event_time_of
from millstream.declare.notebook import place_of
from millstream.errors import Location, closest, fault, listed
from millstream.model.dataset import (
    Alert,
    Connector,
    Expectations,
    Mode,
    Model,
    OnViolation,
    Serve,
    Sink,
    Source,
    Table,
    View,
)
from millstream.model.destination import Destination
from millstream.model.objective import OBJECTIVES
from millstream.model.sketch import named_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlglot import Token, exp
    from sqlglot.errors import SqlglotError

    from millstream.model.spark_types import DataFrame

_NAMING = threading.Lock()
"""A session has one frame by each name, and recomputed tables are answered in threads."""
_LEARN = ("learn_one", "partial_fit")
"""How estimators learn: those of River, and those of scikit-learn."""
_UNCLOSED = re.compile(r"(Missing .+) from \d+:(\d+)")


def location_of(function: Callable[..., Any]) -> Location:
    """Return the location of a function."""
    code = inspect.unwrap(function).__code__
    return Location(place_of(code.co_filename), code.co_firstlineno)


def location_of_caller(depth: int = 2) -> Location:
    """Return the line that called the caller of this function."""
    frame = sys._getframe(depth)
    return Location(place_of(frame.f_code.co_filename), frame.f_lineno)


def inputs_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """List the datasets a function reads: its parameters.

    >>> def clean(readings, devices): ...
    >>> inputs_of(clean)
    ('readings', 'devices')
    """
    return tuple(inspect.signature(function).parameters)


class SourceOptions(TypedDict, total=False):
    """The options of a source, besides its connector."""

    name: str
    event_time: str | Mapping[str, str]
    watermark: str
    future: str
    late: Literal["keep", "fail"]
    idle: str
    live: bool
    partition_by: Literal["day"]
    expect: Mapping[str, str]
    evolve: bool
    trigger: str
    batch: str
    freshness: str
    behind: str
    failed_rows: str
    keep: str
    keep_versions: str


class ViewOptions(TypedDict, total=False):
    """The options of a view, besides its query."""

    name: str


class TableOptions(TypedDict, total=False):
    """The options of a table, besides its query."""

    name: str
    mode: Mode
    key: Sequence[str]
    partition_by: Sequence[str]
    expect: Mapping[str, str]
    on_violation: OnViolation
    evolve: bool
    trigger: str
    batch: str
    freshness: str
    behind: str
    failed_rows: str
    keep_quarantined: str
    keep_versions: str


class ServeOptions(TypedDict, total=False):
    """The options of a served answer, besides its query."""

    to: Required[Sink | Sequence[Sink]]
    name: str
    mode: Mode
    trigger: str
    batch: str
    freshness: str
    behind: str
    failed_rows: str


class AlertOptions(TypedDict, total=False):
    """The options of an alert, besides its query."""

    to: Required[Destination | Sequence[Destination]]
    name: str
    key: Sequence[str]
    cooldown: str
    event_time: str
    retry_for: str
    trigger: str
    batch: str
    freshness: str
    behind: str
    failed_rows: str
    keep: str
    keep_versions: str


class ModelOptions(TypedDict, total=False):
    """The options of a model, besides the rows that it learns from."""

    learner: Required[Any]
    label: str
    features: Sequence[str]
    key: Sequence[str]
    every: str
    metrics: Sequence[Any]
    drift: Any
    window: int
    classes: Sequence[Any]
    event_time: str
    name: str
    trigger: str
    batch: str
    freshness: str
    behind: str
    failed_rows: str
    keep_quarantined: str
    keep_versions: str


def source_of(function: Callable[[], object], options: SourceOptions) -> Source:
    """Make a source of a function that returns a connector.

    Raises:
        SOURCE_PARAMETERS: The function wants arguments.
        NOT_A_CONNECTOR: It returns something else.
        UNKNOWN_OPTION: An option does not exist.
    """
    at, own = location_of(function), dict[str, Any](options)
    name = str(own.pop("name", function.__name__))
    _refuse_unknown(own, SourceOptions, dataset=name, at=at)
    if parameters := inputs_of(function):
        raise fault("SOURCE_PARAMETERS", at=at, source=name, parameters=", ".join(parameters))
    connector = function()
    if not isinstance(connector, Connector):
        raise fault("NOT_A_CONNECTOR", at=at, source=name, got=described(connector))
    return connected_source(name, connector, at, own)


def connected_source(
    name: str, connector: Connector, at: Location, options: Mapping[str, Any]
) -> Source:
    """Make a source of a connector.

    Raises:
        EVENT_TIME_EXPRESSION: The event time is neither a text nor one name with its expression.
    """
    changed: dict[str, Any] = {"expect": Expectations(dict(options.get("expect", {})))}
    try:
        column, expression = event_time_of(options.get("event_time"), connector)
    except ValueError as error:
        raise fault(
            "EVENT_TIME_EXPRESSION",
            at=at,
            source=name,
            expression=options["event_time"],
            why=str(error),
            instead='give event_time="…", or one name with its expression, {"at": "…"}',
        ) from None
    changed |= {"event_time": column, "event_time_from": expression}
    return Source(name=name, connector=connector, at=at, **{**options, **changed})


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
    name = options.get("name", function.__name__)
    return built_serve(name, function, inputs_of(function), location_of(function), options)


def built_serve(
    name: str,
    build: Callable[..., object],
    reads: tuple[str, ...],
    at: Location,
    options: ServeOptions,
) -> Serve:
    """Make a served answer of whatever builds it.

    Raises:
        NOT_A_SINK: It is served to something else.
        UNKNOWN_OPTION: An option does not exist.
    """
    _refuse_unknown(options, ServeOptions, dataset=name, at=at)
    to: object = options.get("to", ())
    sinks = tuple(to) if isinstance(to, list | tuple) else (to,)
    for sink in sinks or (None,):
        if not isinstance(sink, Sink):
            raise fault("NOT_A_SINK", at=at, serve=name, got=described(sink))
    return Serve(
        name,
        reads,
        build,
        at,
        sinks,
        mode=options.get("mode"),
        trigger=options.get("trigger"),
        batch=options.get("batch"),
        **_objectives(options),
    )


def alert_of(function: Callable[..., object], options: AlertOptions) -> Alert:
    """Make an alert of a function from DataFrames to a DataFrame.

    Raises:
        NOT_A_DESTINATION: It is sent to something else.
        UNKNOWN_OPTION: An option does not exist.
    """
    name = options.get("name", function.__name__)
    return built_alert(name, function, inputs_of(function), location_of(function), options)


def built_alert(
    name: str,
    build: Callable[..., object],
    reads: tuple[str, ...],
    at: Location,
    options: AlertOptions,
) -> Alert:
    """Make an alert of whatever builds its rows.

    Raises:
        NOT_A_DESTINATION: It is sent to something else.
        UNKNOWN_OPTION: An option does not exist.
    """
    _refuse_unknown(options, AlertOptions, dataset=name, at=at)
    to: object = options.get("to", ())
    destinations = tuple(to) if isinstance(to, list | tuple) else (to,)
    for destination in destinations or (None,):
        if not isinstance(destination, Destination):
            raise fault("NOT_A_DESTINATION", at=at, alert=name, got=described(destination))
    return Alert(
        name,
        reads,
        build,
        at,
        key=_names(options.get("key", ())),
        trigger=options.get("trigger"),
        batch=options.get("batch"),
        to=destinations,
        cooldown=options.get("cooldown"),
        event_time=options.get("event_time"),
        retry_for=options.get("retry_for", "1 day"),
        **_objectives(options),
        keep=options.get("keep"),
        keep_versions=options.get("keep_versions"),
    )


def model_of(function: Callable[..., object], options: ModelOptions) -> Model:
    """Make a model of a function that returns the rows to learn from.

    Raises:
        NOT_A_LEARNER: Its learner cannot learn.
        UNKNOWN_OPTION: An option does not exist.
    """
    name, at = options.get("name", function.__name__), location_of(function)
    _refuse_unknown(options, ModelOptions, dataset=name, at=at)
    return Model(
        name,
        inputs_of(function),
        function,
        at,
        key=_names(options.get("key", ())),
        partition_by=("_kind",),
        trigger=options.get("trigger"),
        batch=options.get("batch"),
        **_objectives(options),
        keep_quarantined=options.get("keep_quarantined"),
        keep_versions=options.get("keep_versions"),
        learner=_learner(options.get("learner"), name, at),
        label=options.get("label"),
        features=_names(options.get("features", ())),
        every=options.get("every", "1 hour"),
        metrics=tuple(options.get("metrics", ())),
        drift=options.get("drift"),
        window=options.get("window", 1000),
        classes=tuple(options.get("classes", ())),
        event_time=options.get("event_time"),
    )


def _learner(learner: Any, model: str, at: Location) -> Callable[[], Any]:
    """Return what makes learners: a copy of an estimator, or the function that was given."""
    if any(hasattr(learner, method) for method in _LEARN):
        return partial(copy.deepcopy, learner)
    if not inspect.isfunction(learner):
        raise fault("NOT_A_LEARNER", at=at, model=model, got=described(learner))
    return learner


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
        batch=options.get("batch"),
        **_objectives(options),
        keep_quarantined=options.get("keep_quarantined"),
        keep_versions=options.get("keep_versions"),
    )


def _objectives(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in OBJECTIVES if name in options}


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


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
    """Returns the location of a line of the query."""

    @staticmethod
    def of(query: str, *, dataset: str, place: Callable[[int], Location]) -> SqlFunction:
        """Make a function of a query.

        Raises:
            SQL_REFUSED: The text is not one query in Spark's dialect.
        """
        return SqlFunction(query, tuple(sql_inputs(query, dataset=dataset, place=place)), place)

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """Run the query on DataFrames."""
        spark = frames[0].sparkSession
        with _NAMING:
            for name, frame in zip(self.reads, frames, strict=True):
                frame.createOrReplaceTempView(name)
            for function in named_in(self.query):
                spark.sql(function)
            try:
                return spark.sql(self.query)
            finally:
                for name in self.reads:
                    spark.catalog.dropTempView(name)

    def place_of(self, offset: int) -> Location:
        """Return the location of a character of the query."""
        return self.place(self.query.count("\n", 0, offset) + 1)


def sql_inputs(query: str, *, dataset: str, place: Callable[[int], Location]) -> Mapping[str, int]:
    r"""List the datasets a query reads: its FROM names, without those it defines itself.

    Args:
        query: The text.
        dataset: What it is the query of.
        place: Returns the location of a line of it.

    Returns:
        The names, each with the line of the query that names it first.

    Raises:
        SQL_REFUSED: The text is not one query in Spark's dialect.

    >>> query = "WITH x AS (SELECT 1)\nSELECT * FROM a JOIN x"
    >>> sql_inputs(query, dataset="d", place=lambda line: Location("d.sql", line))
    {'a': 2}
    """
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
    """Return the line of the first name in a part of a query."""
    return min((n.meta["line"] for n in node.walk() if "line" in n.meta), default=1)


def _explained(error: SqlglotError, query: str) -> tuple[str, int]:
    """Return why a text cannot be read, and at which of its lines."""
    for found in getattr(error, "errors", ()):
        cause = str(found["description"]).partition(" but got <")[0]
        return f"{cause}, near {found['highlight']!r}", found["line"] or 1
    cause = str(error.__cause__ or error)
    if unclosed := _UNCLOSED.fullmatch(cause):
        # sqlglot says at which line the text ends, and at which character the quotation began.
        return unclosed[1], query.count("\n", 0, int(unclosed[2])) + 1
    return cause.splitlines()[0], 1


def described(value: object) -> str:
    """Return what a value is, in an error.

    >>> described(None), described(3)
    ('None', 'int')
    """
    return "None" if value is None else type(value).__name__

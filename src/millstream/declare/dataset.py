"""Functions, queries and their options become frozen datasets."""

from __future__ import annotations

import copy
import inspect
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from millstream.declare.event_time import event_time_of
from millstream.declare.function import inputs_of, location_of
from millstream.declare.options import (
    AlertOptions,
    FunctionalOptions,
    ModelOptions,
    ServeOptions,
    SourceOptions,
    TableOptions,
    ViewOptions,
)
from millstream.declare.sql_function import SqlFunction
from millstream.errors import Location, closest, fault, listed
from millstream.model.connector import Connector
from millstream.model.dataset import (
    Alert,
    Expectations,
    FunctionalStream,
    Model,
    Serve,
    Source,
    Table,
    View,
)
from millstream.model.destination import Destination
from millstream.model.query_options import NAMES, QueryOptions
from millstream.model.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_LEARN = ("learn_one", "partial_fit", "sums")
"""How learners learn: those of River, of scikit-learn, and those whose statistics merge."""
_MODEL_AND_ROWS = 2
"""How many parameters a function has that learns."""


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
    changed |= {"options": QueryOptions.among(options)}
    own = {option: value for option, value in options.items() if option not in NAMES}
    return Source(name=name, connector=connector, at=at, **{**own, **changed})


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
        options=QueryOptions.among(options),
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
        to=destinations,
        cooldown=options.get("cooldown"),
        event_time=options.get("event_time"),
        retry_for=options.get("retry_for", "1 day"),
        options=QueryOptions.among(options),
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
        options=QueryOptions.among(options),
        way=_way(options.get("learner")),
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


def stream_of(function: Callable[..., object], options: FunctionalOptions) -> FunctionalStream:
    """Make a functional stream of a function from DStreams to a DStream.

    Raises:
        UNKNOWN_OPTION: An option does not exist.
    """
    name, at = options.get("name", function.__name__), location_of(function)
    _refuse_unknown(options, FunctionalOptions, dataset=name, at=at)
    own: dict[str, Any] = {o: options[o] for o in ("schema", "interval") if o in options}
    shared = {option: value for option, value in options.items() if option not in own}
    table = built_table(name, function, inputs_of(function), at, cast("TableOptions", shared))
    own.setdefault("schema", "")
    return FunctionalStream(**{f.name: getattr(table, f.name) for f in fields(table)}, **own)


def _way(learner: Any) -> Literal["rows", "sums", "slices"]:
    """Return what a learner learns from."""
    if hasattr(learner, "sums"):
        return "sums"
    is_function = inspect.isfunction(learner)
    has_rows = is_function and len(inspect.signature(learner).parameters) == _MODEL_AND_ROWS
    return "slices" if has_rows else "rows"


def _learner(learner: Any, model: str, at: Location) -> Callable[[], Any]:
    """Return what makes learners: a copy of an estimator, or what a function returns.

    A function of a model and of rows is a learner itself.
    """
    if any(hasattr(learner, method) for method in _LEARN):
        return partial(copy.deepcopy, learner)
    if not inspect.isfunction(learner):
        raise fault("NOT_A_LEARNER", at=at, model=model, got=described(learner))
    if (count := len(inspect.signature(learner).parameters)) == _MODEL_AND_ROWS:
        return lambda: learner
    if count:
        got = f"a function of {count} parameters"
        raise fault("NOT_A_LEARNER", at=at, model=model, got=got)
    return cast("Callable[[], Any]", learner)


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
        options=QueryOptions.among(options),
    )


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


def described(value: object) -> str:
    """Return what a value is, in an error.

    >>> described(None), described(3)
    ('None', 'int')
    """
    return "None" if value is None else type(value).__name__

"""What users call to keep state by key: a function of one key becomes one of DataFrames."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack, cast

from millstream.declare.dataset import described
from millstream.declare.function import location_of, location_of_caller
from millstream.errors import MillstreamError, SchemaError, closest, fault, listed
from millstream.model.duration import parse_duration
from millstream.model.schema import Schema
from millstream.model.state import CLOCKS, ORDERS, KeyedState
from millstream.operators.fault import option_fault
from millstream.operators.state.refusal import stateful_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    from pyspark.sql import DataFrame, SparkSession

    from millstream.errors import Location
    from millstream.model.state import Clock
    from millstream.operators.state.refusal import StatefulFault

_CALL = "ms.stateful"
_RESERVED = ("clear",)
_NEEDED = ("key", "state", "emits")
_EXAMPLE = 'write @ms.stateful(key="user", state="n BIGINT", emits="user STRING, n BIGINT")'


class StatefulOptions(TypedDict, total=False):
    """The options of `ms.stateful`."""

    key: Required[str | Sequence[str]]
    """The columns by which rows belong together."""
    state: Required[str]
    """What is kept of a key, as DDL; its columns are attributes of `state`."""
    emits: Required[str]
    """The rows that the function emits, as DDL."""
    timeout: str
    """How long after the last row of a key it is called without rows, and the key forgotten."""
    ttl: str
    """How long after its last row a key is forgotten."""
    order: str
    """"event": when the watermark has passed them, by event time; "arrival": as they come."""
    event_time: str
    """The column that orders rows, if there are several of type TIMESTAMP."""
    initial: Callable[[SparkSession], DataFrame]
    """What keys begin with: a DataFrame with the columns of the key and of the state."""


class Stateful:
    """A function of one key, to be called with a DataFrame."""

    def __init__(
        self,
        function: Callable[..., Any],
        declared: KeyedState,
        initial: Callable[[SparkSession], DataFrame] | None,
    ) -> None:
        self.function, self.declared, self.initial = function, declared, initial
        self.__name__, self.__doc__ = declared.name, function.__doc__
        self.__wrapped__ = function

    def __call__(self, rows: DataFrame) -> DataFrame:
        """Return the rows that the function emits, in a stream as the watermark allows.

        Raises:
            DeclarationError: The rows do not fit what is declared.
        """
        from millstream.operators.state.rows import emitted

        return emitted(self, rows)

    def __repr__(self) -> str:
        return f"<stateful {self.declared.name} by {', '.join(self.declared.key)}>"


def stateful(
    function: None = None, /, **options: Unpack[StatefulOptions]
) -> Callable[[Callable[..., Iterable[Any] | None]], Stateful]:
    """Keep state by key, with a function `(key, rows, state, timer)` of one key.

    In event order it is called once for each instant at which a key has rows, and once for each
    timer, in the order of time: the same calls in a batch and in a stream.

    Raises:
        DeclarationError: The declaration does not fit together.
    """
    at = location_of_caller()
    _check_options(options, at)

    def made(function: Callable[..., Iterable[Any] | None]) -> Stateful:
        if not hasattr(inspect.unwrap(function), "__code__"):
            name = type(function).__name__
            raise stateful_fault(name, "function", got=described(function), at=at)
        declared = _declared(function, options)
        return Stateful(function, _with(declared, options), options.get("initial"))

    return made if function is None else made(function)


def _check_options(options: StatefulOptions, at: Location) -> None:
    """Check that no option is misspelt or missing."""
    known = tuple(StatefulOptions.__annotations__)
    for name, value in options.items():
        if name not in known:
            instead = f"{closest(name, known)}its options are {listed(known)}"
            why = "it has no such option"
            raise option_fault(_CALL, name, value, why=why, instead=instead, at=at)
    for name in _NEEDED:
        if name not in options:
            why = f"it needs {', '.join(_NEEDED)}"
            raise option_fault(_CALL, name, None, why=why, instead=_EXAMPLE, at=at)


def _columns(key: object) -> tuple[str, ...]:
    """Return the columns of a key; none if they are not names."""
    names = (key,) if isinstance(key, str) else key
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names)


def _declared(function: Callable[..., Any], options: StatefulOptions) -> KeyedState:
    name, at, key = function.__name__, location_of(function), _columns(options["key"])
    parameters = inspect.signature(function).parameters.values()
    takes = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(takes) != 4 or len(parameters) != 4:
        raise fault(
            "STATEFUL_PARAMETERS",
            at=at,
            function=name,
            parameters=", ".join(str(p) for p in parameters),
        )
    if not key:
        raise stateful_fault(name, "key", at=at)
    state, emits = (_schema(options[part], name, at) for part in ("state", "emits"))
    for column in _RESERVED:
        if column in state.names:
            raise stateful_fault(name, "reserved", got=column, at=at)
    forgets = "clear" in inspect.unwrap(function).__code__.co_names
    return KeyedState(name, key, state, emits, at, forgets=forgets)


def _schema(text: str, function: str, at: Location) -> Schema:
    try:
        schema = Schema.parse(text).with_nulls()
    except SchemaError as error:
        raise error.located(at) from None
    for name in schema.names:
        if not name.isidentifier():
            raise stateful_fault(function, "name", got=name, at=at)
    return schema


def _with(declared: KeyedState, options: StatefulOptions) -> KeyedState:
    from dataclasses import replace

    lengths = {n: options.get(n) for n in ("timeout", "ttl")}
    read = {n: _length(n, str(text), declared) for n, text in lengths.items() if text is not None}
    clocks = {clock for clock, _ in read.values()} or {"event"}
    order = options.get("order", "event")

    def refuse(which: StatefulFault, got: object = None) -> MillstreamError:
        return stateful_fault(declared.name, which, got=got, at=declared.at)

    initial = options.get("initial")
    if initial is not None and not callable(initial):
        raise refuse("initial_value", initial)
    if order not in ORDERS:
        raise refuse("order", order)
    if len(clocks) > 1:
        raise refuse("clocks")
    [clock] = clocks
    if clock == "processing" and order == "event":
        raise refuse("processing_order")
    return replace(
        declared,
        clock=cast("Clock", clock),
        order=order,
        event_time=options.get("event_time"),
        timeout=read["timeout"][1] if "timeout" in read else None,
        ttl=read["ttl"][1] if "ttl" in read else None,
    )


def _length(option: str, text: str, declared: KeyedState) -> tuple[str, timedelta]:
    clock, _, length = text.strip().partition(" ")
    if clock not in CLOCKS:
        clock, length = "event", text
    try:
        found = parse_duration(length)
    except ValueError:
        found = None
    if not found:
        got = f"{option}={text!r}"
        raise stateful_fault(declared.name, "length", got=got, at=declared.at) from None
    return clock, found

"""Errors of keyed state: what is declared of it, the rows it is given, and what it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from millstream.errors.base import (
    CommandError,
    DeclarationError,
    Location,
    UserCodeError,
    closest,
    listed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


StatefulFault = Literal[
    "function",
    "key",
    "name",
    "reserved",
    "order",
    "length",
    "clocks",
    "processing_order",
    "initial",
    "initial_value",
]
_FAULTS: Mapping[StatefulFault, tuple[str, str]] = {
    "function": (
        "it is {got}, and not a function",
        "write def …(key, rows, state, timer), and call from there what you have",
    ),
    "key": ("it has no key", 'say by which columns rows belong together: key="user"'),
    "name": (
        "the column {got!r} is no name in Python",
        "use letters, digits and _ in state and emits",
    ),
    "reserved": ("a column of the state is called {got!r}", "give it another name"),
    "order": ("order={got!r} is not known", 'use order="event" or order="arrival"'),
    "length": (
        "{got}: not a length of time",
        'say timeout="event 30 minutes" or ttl="processing 1 day"; event is what is meant '
        "without a word",
    ),
    "clocks": (
        "timeout and ttl go by different clocks",
        "have both by event time, or both by processing time",
    ),
    "processing_order": (
        "its timers go by processing time, and its rows wait for the watermark",
        'say order="arrival", or let the timers go by event time',
    ),
    "initial": (
        "initial gives {got}",
        "give a function of the SparkSession that returns a DataFrame with the columns of the "
        "key and of the state",
    ),
    "initial_value": (
        "initial={got!r} is not a function",
        "give a function of the SparkSession that returns a DataFrame: initial=lambda spark: …",
    ),
}


class StatefulRefusedError(DeclarationError):
    """What is declared of a function with state does not fit together."""

    code = "STATEFUL_REFUSED"

    def __init__(
        self, function: str, fault: StatefulFault, *, got: object = None, at: Location
    ) -> None:
        what, fix = _FAULTS[fault]
        super().__init__(
            f"ms.stateful refuses {function!r}: {what.format(got=got)}", fix=fix, at=at
        )


class StatefulParametersError(DeclarationError):
    """A function with state has other parameters than it is called with."""

    code = "STATEFUL_PARAMETERS"

    def __init__(self, function: str, *, parameters: Sequence[str], at: Location) -> None:
        super().__init__(
            f"{function!r} has the parameters ({', '.join(parameters)}), and is called with four",
            fix=f"write it as def {function}(key, rows, state, timer)",
            at=at,
        )


class StatefulColumnError(DeclarationError):
    """A function with state needs a column that the rows do not have, or not in that way."""

    code = "STATEFUL_COLUMN"

    def __init__(
        self, function: str, column: str, *, why: str, columns: Sequence[str], at: Location
    ) -> None:
        super().__init__(
            f"{function!r} needs the column {column!r}, {why}",
            fix=f"{closest(column, columns)}the rows have {listed(columns)}",
            at=at,
        )


class StatefulTimeError(DeclarationError):
    """It is not known which column is the event time of the rows of a function with state."""

    code = "STATEFUL_TIME"

    def __init__(self, function: str, candidates: Sequence[str], *, at: Location) -> None:
        super().__init__(
            f"the rows of {function!r} have {len(candidates)} columns of type TIMESTAMP "
            f"({listed(candidates)}), and none is said to be the event time",
            fix='say which: ms.stateful(..., event_time="…"); or take rows as they arrive, with '
            'order="arrival" and timers by processing time',
            at=at,
        )


class StatefulUnboundedError(DeclarationError):
    """A function with state goes by the event time of a stream that has no watermark."""

    code = "STATEFUL_UNBOUNDED"

    def __init__(self, function: str, column: str, *, at: Location) -> None:
        super().__init__(
            f"{function!r} goes by {column!r}, which has no watermark in this stream: its rows "
            "and timers would wait for ever",
            fix=f'declare the source with event_time="{column}" and a watermark, and keep the '
            "column as it is up to the function",
            at=at,
        )


class StateKeptForeverError(DeclarationError):
    """Nothing ends the state of a key, so that it grows with the number of keys."""

    code = "STATE_KEPT_FOREVER"
    is_warning = True

    def __init__(self, function: str, *, dataset: str, at: Location) -> None:
        super().__init__(
            f"{function!r}, which {dataset!r} calls, remembers every key for ever: it has no "
            "timeout, no ttl, and never calls state.clear()",
            fix='say when a key is forgotten: timeout="event 30 minutes" or ttl="7 days"; or '
            "leave it, if there are few keys",
            at=at,
        )


class EmittedRowError(UserCodeError):
    """A function with state gave a row that does not fit what it is declared to give."""

    code = "EMITTED_ROW"

    def __init__(self, function: str, *, row: str, why: str, emits: str, at: Location) -> None:
        super().__init__(
            f"{function!r} gives {row}, which does not fit {emits}: {why}",
            fix="yield rows as tuples in the order of emits, or as dicts by its names; times "
            "with a time zone",
            at=at,
        )


class StateValueError(UserCodeError):
    """A function put a value into its state that does not fit the declared type."""

    code = "STATE_VALUE"

    def __init__(self, function: str, *, why: str, state: str, at: Location) -> None:
        super().__init__(
            f"{function!r} leaves a state that does not fit {state}: {why}",
            fix="keep to the types of state, or change them; times with a time zone",
            at=at,
        )


class TimerRefusedError(UserCodeError):
    """A function with state set a timer that cannot be kept."""

    code = "TIMER_REFUSED"

    def __init__(self, function: str, timer: str, *, why: str, at: Location) -> None:
        super().__init__(
            f"{function!r} sets the timer {timer!r}: {why}",
            fix='set it to a time with a time zone, later than the call: timer.set("check", '
            "timer.now + timedelta(minutes=5))",
            at=at,
        )


class StatefulRaisedError(UserCodeError):
    """A function with state raised, and there is no quarantine for the row."""

    code = "STATEFUL_RAISED"

    def __init__(self, function: str, *, cause: str, row: str, at: Location) -> None:
        super().__init__(
            f"{function!r} raises {cause} on {row}",
            fix="mend the function; a table would keep the row in its quarantine and go on",
            at=at,
        )


class StateChangedError(DeclarationError):
    """What a function or an operator keeps is not what its checkpoint holds."""

    code = "STATE_CHANGED"

    def __init__(
        self,
        function: str,
        *,
        query: str,
        changes: Sequence[str],
        at: Location,
        can_go_back: bool = True,
    ) -> None:
        back = "declare it as it was, or " if can_go_back else ""
        super().__init__(
            f"the state of {function!r} in {query!r} is not the one that was deployed: "
            f"{'; '.join(changes)}",
            fix=f"{back}give the dataset a new name, which starts anew from what has landed",
            at=at,
        )


class UnknownStateError(CommandError):
    """No function of this name keeps state."""

    code = "UNKNOWN_STATE"

    def __init__(self, name: str, *, known: Sequence[str]) -> None:
        super().__init__(
            f"nothing that has run keeps a state called {name!r}",
            fix=f"{closest(name, known)}there are {listed(known)}",
        )

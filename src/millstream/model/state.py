"""Keyed state: what is declared of a function of one key, and what a deployment keeps of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from millstream.model.data_type import type_ddl
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import timedelta

    from millstream.errors import Location

Clock = Literal["event", "processing"]
Order = Literal["event", "arrival"]
CLOCKS: tuple[Clock, ...] = ("event", "processing")
ORDERS: tuple[Order, ...] = ("event", "arrival")

TIMEOUT = "timeout"
"""The timer that a declared time-out sets."""

ROW, RAISED = "_row", "_raised"
"""Columns of a quarantine: a row that a function raised on, as JSON, and the traceback."""


@dataclass(frozen=True, slots=True)
class KeyedState:
    """A function of one key with state."""

    name: str
    key: tuple[str, ...]
    state: Schema
    emits: Schema
    at: Location
    clock: Clock = "event"
    """What its timers go by."""
    order: Order = "event"
    timeout: timedelta | None = None
    """How long after the last row of a key it is called without rows, and the key forgotten."""
    ttl: timedelta | None = None
    """How long after its last row a key is forgotten."""
    event_time: str | None = None
    forgets: bool = False
    """Whether the function itself clears the state of a key."""

    @property
    def is_bounded(self) -> bool:
        """Whether anything ends the state of a key."""
        return self.forgets or self.timeout is not None or self.ttl is not None


@dataclass(frozen=True, slots=True)
class KeptState:
    """What a checkpoint holds for each key, as it was when the query first ran."""

    name: str
    key: Schema
    state: Schema

    def changes(self, now: KeptState) -> Iterator[str]:
        """Describe what has changed in what is kept."""
        for what, was, has in (("key", self.key, now.key), ("state", self.state, now.state)):
            before = {field.name: type_ddl(field.type) for field in was.fields}
            after = {field.name: type_ddl(field.type) for field in has.fields}
            for name in before | after:
                if name not in after:
                    yield f"the {what} has lost {name!r}"
                elif name not in before:
                    yield f"the {what} has {name!r} anew"
                elif before[name] != after[name]:
                    yield f"{name!r} of the {what} was {before[name]} and is {after[name]}"
            if before == after and [*before] != [*after]:
                yield f"the columns of the {what} come in another order"

    def to_json(self) -> dict[str, str]:
        """Write it down."""
        return {"name": self.name, "key": self.key.to_ddl(), "state": self.state.to_ddl()}

    @staticmethod
    def from_json(value: dict[str, Any]) -> KeptState:
        """Read what was written."""
        schemas = (Schema.parse(value[part]) for part in ("key", "state"))
        return KeptState(str(value["name"]), *schemas)


@dataclass(frozen=True, slots=True)
class KeptOperator:
    """What the state of an operator depends on, as it was when the query first ran."""

    name: str
    """What users call, such as `ms.match`."""
    facts: Mapping[str, str]
    """Each with what it is called: keys, lengths of time, steps."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The types of the columns of rows that are kept: others may come, and these may go."""
    at: Location | None = field(default=None, compare=False)
    """The line of the user; it is not written down."""

    def changes(self, now: KeptOperator) -> Iterator[str]:
        """Describe what has changed."""
        for what in {**self.facts, **now.facts}:
            was, has = self.facts.get(what), now.facts.get(what)
            if has is None:
                yield f"it has lost {what}: {was}"
            elif was is None:
                yield f"it has {what} anew: {has}"
            elif was != has:
                yield f"{what} was {was} and is {has}"
        for what, has in now.columns.items():
            if (was := self.columns.get(what, has)) != has:
                yield f"{what} was {was} and is {has}"

    def grown(self, now: KeptOperator) -> KeptOperator:
        """Add the columns of rows that it keeps from now on."""
        return replace(now, columns={**self.columns, **now.columns})

    def to_json(self) -> dict[str, Any]:
        """Write it down."""
        return {"operator": self.name, "facts": dict(self.facts), "columns": dict(self.columns)}

    @staticmethod
    def from_json(value: dict[str, Any]) -> KeptOperator:
        """Read what was written."""
        return KeptOperator(str(value["operator"]), value["facts"], value["columns"])


Kept = KeptState | KeptOperator


def written(states: tuple[Kept, ...]) -> str:
    """Write down what a query keeps.

    >>> kept = KeptState("n", Schema.parse("user STRING"), Schema.parse("n BIGINT"))
    >>> once = KeptOperator("ms.dedup", {"within": "1 minute"})
    >>> read(written((kept, once))) == (kept, once)
    True
    """
    return json.dumps([state.to_json() for state in states], indent=2) + "\n"


def read(text: str) -> tuple[Kept, ...]:
    """Read what a query keeps."""
    return tuple(
        KeptOperator.from_json(value) if "operator" in value else KeptState.from_json(value)
        for value in json.loads(text)
    )

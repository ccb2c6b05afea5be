"""How the rows, the key, the state and the answers of a function of a key are read and written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import convert
from msgspec.structs import astuple

from millstream.errors import fault
from millstream.operators.state.python_types import (
    has_numbers_to_check,
    is_plain,
    record_of,
    state_of,
    to_json_value,
)

if TYPE_CHECKING:
    from millstream.model.schema import Schema
    from millstream.model.state import KeyedState
    from millstream.operators.state.python_types import KeyState

JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
    "timeZone": "UTC",
}
"""How Spark reads and writes the texts: to the microsecond."""

MEMORY = msgspec.msgpack.Decoder(tuple[bytes | None, dict[str, int], list[tuple[int, str]]])
"""Reads the memory of a key: its state, its timers, and rows that wait."""

_SHOWN = 200
_SEQUENCES = tuple, list


@dataclass(slots=True)
class KeyMemory:
    """What is remembered of a key."""

    state: KeyState
    timers: dict[str, int]
    """When each timer is due, in microseconds."""
    pending: list[tuple[int, str]]
    """Rows that the frontier has not reached: event time and text."""


class StateCodec:
    """Reads and writes what goes into a function of a key and what comes out."""

    def __init__(self, declared: KeyedState, key: Schema, columns: Schema) -> None:
        self._declared, self._key, self._columns = declared, key, columns
        self._of_key = msgspec.json.Decoder(record_of(key), strict=False)
        self._of_row = msgspec.json.Decoder(record_of(columns), strict=False)
        self._kept = state_of(declared.state)
        self._of_state = msgspec.msgpack.Decoder(self._kept)
        self._fresh = self._kept()
        self._numbers = declared.state.fields if has_numbers_to_check(declared.state) else ()
        self._answer = record_of(declared.emits)
        self._names = declared.emits.names
        self._plain = is_plain(declared.emits)
        self._checks = has_numbers_to_check(declared.emits)
        self._json = msgspec.json.Encoder(decimal_format="number")
        self._initial = msgspec.json.Decoder(record_of(declared.state), strict=False)

    def key(self, text: str) -> Any:
        """Read a key: a value, or a tuple of values if it has several columns."""
        values = astuple(self._of_key.decode(text))
        return values[0] if len(values) == 1 else values

    def row(self, text: str) -> Any:
        """Read a row."""
        return self._of_row.decode(text)

    def initial(self, text: str) -> KeyState:
        """Read an initial state from a row."""
        row = self._initial.decode(text)
        found = {name: getattr(row, name) for name in row.__struct_fields__}
        return self._kept(**{name: value for name, value in found.items() if value is not None})

    def unpack(self, packed: bytes | None) -> KeyMemory:
        """Read the memory of a key."""
        if packed is None:
            return KeyMemory(self._kept(), {}, [])
        state, timers, pending = MEMORY.decode(packed)
        return KeyMemory(self.state(state), timers, pending)

    def state(self, packed: bytes | None) -> KeyState:
        """Read a state; None is the initial one."""
        return self._kept() if packed is None else self._of_state.decode(packed)

    def pack(self, memory: KeyMemory) -> bytes | None:
        """Write the memory of a key; None if it is empty."""
        state = self.packed_state(memory.state)
        if state is None and not memory.timers and not memory.pending:
            return None
        return msgspec.msgpack.encode((state, memory.timers, memory.pending))

    def is_fresh(self, state: KeyState) -> bool:
        """Whether a state is the initial one."""
        return bool(state == self._fresh)

    def packed_state(self, state: KeyState) -> bytes | None:
        """Write a state, checked against its types; None if it is the initial one.

        Raises:
            STATE_VALUE: A value does not fit.
        """
        if self.is_fresh(state):
            return None
        try:
            packed = msgspec.msgpack.encode(state)
            again = self._of_state.decode(packed)
            for column in self._numbers:
                to_json_value(getattr(again, column.name), column.type)
        except (TypeError, ValueError, OverflowError) as error:
            raise fault(
                "STATE_VALUE",
                at=self._declared.at,
                function=self._declared.name,
                state=f"state={self._declared.state.to_ddl()!r}",
                why=_by_name(str(error), self._declared.state.names),
            ) from error
        return packed

    def answer(self, row: Any) -> tuple[Any, ...]:
        """Write an emitted row, checked against its types: as text, or unchanged if it is plain.

        Raises:
            EMITTED_ROW: It does not fit.
        """
        try:
            by_name = row if isinstance(row, dict) else self._named(row)
            answer: Any = convert(by_name, self._answer)
            if self._checks:
                columns = self._declared.emits.fields
                answer = {c.name: to_json_value(getattr(answer, c.name), c.type) for c in columns}
            text = self._json.encode(answer)
            return astuple(answer) if self._plain else (text.decode(),)
        except (TypeError, ValueError, OverflowError) as error:
            shown = repr(row)
            raise fault(
                "EMITTED_ROW",
                at=self._declared.at,
                function=self._declared.name,
                row=shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…",
                emits=f"emits={self._declared.emits.to_ddl()!r}",
                why=_by_name(str(error), self._names),
            ) from error

    def _named(self, row: Any) -> dict[str, Any]:
        if not isinstance(row, _SEQUENCES) or len(row) != len(self._names):
            raise ValueError(f"expected a dict or {len(self._names)} values")  # noqa: TRY003
        return dict(zip(self._names, row, strict=True))


def _by_name(message: str, names: tuple[str, ...]) -> str:
    """Replace the numbers of columns in a message by their names.

    >>> _by_name("Expected `int`, got `str` - at `$[1]`", ("user", "n"))
    'Expected `int`, got `str` - at `n`'
    """
    for number, name in enumerate(names):
        message = message.replace(f"`$[{number}]", f"`{name}").replace(f"`$.{name}", f"`{name}")
    return message

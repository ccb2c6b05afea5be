"""The steps that turn the bytes of a record into values of declared columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from millstream.model.avro.kind import AvroSchema, AvroType
    from millstream.model.data_type import Type

Wire: TypeAlias = Literal[
    "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum"
]


@dataclass(frozen=True, slots=True)
class Conversion:
    """What is made of a value as it was written."""

    do: Literal[
        "keep",  # as it is
        "fit",  # whole numbers of fewer bytes, and days: within bounds
        "real",  # a whole number becomes a float
        "single",  # a whole number becomes a float of four bytes
        "instant",  # microseconds, within bounds
        "decimal",  # bytes are an unscaled number
        "text",  # bytes are UTF-8
        "uuid",  # bytes are the text of a UUID
        "uuid bytes",  # bytes are a UUID
    ]
    into: Type
    by: int = 1
    """Of instants, how many microseconds a unit has; if negative, how many units a microsecond."""
    scale: int = 0
    """Of decimals, as they were written."""


@dataclass(frozen=True, slots=True)
class Read:
    """A value without parts."""

    wire: Wire
    turn: Conversion
    size: int = 0
    """Of fixed."""
    symbols: tuple[str | None, ...] = ()
    """Of enums: what each number stands for, None for what the reader does not know."""
    name: str = ""
    """Of enums and fixed."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """A null, which takes no bytes."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """A value that cannot be in this column: a record that has it is malformed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Choose:
    """A union: one step by number."""

    branches: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class List:
    """An array."""

    item: Step
    is_weightless: bool
    """Whether items take no bytes, so that the bytes there are do not say how many there can be."""


@dataclass(frozen=True, slots=True)
class Dict:
    """A map."""

    value: Step


@dataclass(frozen=True, slots=True)
class SkipValue:
    """A value that no column wants."""

    kind: AvroType
    schema: AvroSchema


@dataclass(frozen=True, slots=True)
class Default:
    """A value that records lack, and the reader's schema has: as a record would have it."""

    raw: bytes
    step: Step


@dataclass(frozen=True, slots=True)
class Build:
    """A record: its fields in the order they were written, each for a column or for none."""

    parts: tuple[tuple[str, Step, int | None], ...]
    defaults: tuple[tuple[str, Default, int], ...]
    width: int
    """How many columns it makes."""


Step: TypeAlias = Read | Nothing | Refuse | Choose | List | Dict | SkipValue | Build

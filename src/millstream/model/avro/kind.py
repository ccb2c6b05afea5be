"""The types of Avro, as its specification has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class AvroTextError(ValueError):
    """A text that is no Avro schema; says why."""


@dataclass(frozen=True, slots=True)
class Logical:
    """What a plain value stands for, such as a date."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        is_decimal = self.name == "decimal"
        return f"decimal({self.precision},{self.scale})" if is_decimal else self.name


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts."""

    name: str
    logical: Logical | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.logical})" if self.logical else self.name


@dataclass(frozen=True, slots=True)
class Named:
    """What all types have that go by a name."""

    name: str
    """With its namespace."""
    aliases: tuple[str, ...] = field(default=(), kw_only=True)

    def is_known_as(self, other: Named) -> bool:
        """Whether data written as another can be read as this, going by the names."""
        plain = _unqualified(other.name)
        return plain == _unqualified(self.name) or bool({other.name, plain} & {*self.aliases})


@dataclass(frozen=True, slots=True)
class Fixed(Named):
    """So many bytes."""

    size: int
    logical: Logical | None = None

    def __str__(self) -> str:
        return f"fixed {self.name} ({self.logical})" if self.logical else f"fixed {self.name}"


@dataclass(frozen=True, slots=True)
class Enumeration(Named):
    """One of a few words."""

    symbols: tuple[str, ...]
    default: str | None = None

    def __str__(self) -> str:
        return f"enum {self.name}"


@dataclass(frozen=True, slots=True)
class Sequence:
    """Items of one type."""

    items: AvroType

    def __str__(self) -> str:
        return "array"


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Values of one type, by name."""

    values: AvroType

    def __str__(self) -> str:
        return "map"


@dataclass(frozen=True, slots=True)
class Union:
    """A value of one of several types."""

    branches: tuple[AvroType, ...]

    def __str__(self) -> str:
        return f"union of {', '.join(map(str, self.branches))}"


NO_DEFAULT = object()


@dataclass(frozen=True, slots=True)
class AvroField:
    """A field of a record."""

    name: str
    type: AvroType
    default: Any = NO_DEFAULT
    """As it stands in the JSON of the schema."""
    aliases: tuple[str, ...] = ()

    @property
    def has_default(self) -> bool:
        """Whether a record may lack it."""
        # By its kind: the one object is another in a worker's process.
        return type(self.default) is not object


@dataclass(frozen=True, slots=True)
class Record(Named):
    """Named values of several types."""

    parts: tuple[AvroField, ...]

    def __str__(self) -> str:
        return f"record {self.name}"


@dataclass(frozen=True, slots=True)
class AvroReference:
    """The name of a type that is defined elsewhere in the schema."""

    name: str

    def __str__(self) -> str:
        return self.name


AvroType: TypeAlias = (
    Primitive | Fixed | Enumeration | Sequence | Dictionary | Union | Record | AvroReference
)
Definition: TypeAlias = Fixed | Enumeration | Record


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A record, and the types it is made of; two are the same if their texts are."""

    text: str
    root: Record = field(compare=False, repr=False)
    names: Mapping[str, Definition] = field(compare=False, repr=False)
    origin: str = field(default="given", compare=False)
    """The file it was read from."""

    def definition(self, kind: AvroType) -> AvroType:
        """Look a reference up; other types are themselves."""
        return self.names[kind.name] if isinstance(kind, AvroReference) else kind


@dataclass(frozen=True, slots=True)
class AvroSchemas:
    """What the records of a source were written by, and what they are read as."""

    writers: tuple[tuple[int | None, AvroSchema], ...]
    """By the id that a record begins with; one without an id if records begin with none."""
    reader: AvroSchema | None = None


def _unqualified(name: str) -> str:
    return name.rpartition(".")[2]

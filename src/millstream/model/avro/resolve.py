"""Which steps lead from a writer's schema, by way of a reader's, to the declared columns.

Values are resolved as the specification of Avro says: fields by name or alias, defaults for those
that records lack, promotions of numbers, bytes and strings, branches of unions by what is met.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from millstream.model.avro.encode import encode
from millstream.model.avro.kind import (
    AvroField,
    AvroTextError,
    Dictionary,
    Enumeration,
    Fixed,
    Logical,
    Named,
    Primitive,
    Record,
    Sequence,
    Union,
)
from millstream.model.avro.step import (
    Build,
    Choose,
    Conversion,
    Default,
    Dict,
    List,
    Nothing,
    Read,
    Refuse,
    SkipValue,
    Step,
    Wire,
)
from millstream.model.data_type import Array, Atom, Decimal, Map, Struct, Type, type_ddl

if TYPE_CHECKING:
    from millstream.model.avro.kind import AvroSchema, AvroType
    from millstream.model.data_type import Field
    from millstream.model.schema import Schema

_PROMOTIONS = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}
_PLAIN: dict[str, dict[Type, str]] = {
    "boolean": {Atom.BOOLEAN: "keep"},
    "int": {
        **dict.fromkeys((Atom.INT, Atom.BIGINT), "keep"),
        **dict.fromkeys((Atom.TINYINT, Atom.SMALLINT), "fit"),
        **dict.fromkeys((Atom.FLOAT, Atom.DOUBLE), "real"),
    },
    "long": {Atom.BIGINT: "keep", Atom.FLOAT: "real", Atom.DOUBLE: "real"},
    "float": {Atom.FLOAT: "keep", Atom.DOUBLE: "keep"},
    "double": {Atom.DOUBLE: "keep"},
    "string": {Atom.STRING: "text", Atom.BINARY: "keep"},
    "bytes": {Atom.BINARY: "keep", Atom.STRING: "text"},
    "fixed": {Atom.BINARY: "keep"},
}
_UNITS = {"millis": 1000, "micros": 1, "nanos": -1000}


@dataclass(frozen=True, slots=True)
class AvroColumn:
    """Why a declared column cannot be had."""

    column: str
    why: str
    can_default: bool = False
    """Whether a default in the reader's schema would help."""


class _UnresolvedError(Exception):
    """A value cannot become what is wanted of it."""

    def __init__(self, why: str, path: str = "", *, can_default: bool = False) -> None:
        super().__init__(why)
        self.why, self.path, self.can_default = why, path, can_default


def resolve(
    writer: AvroSchema, reader: AvroSchema | None, columns: Schema
) -> tuple[Build | None, tuple[AvroColumn, ...]]:
    """Find the steps of a whole record, or all columns that cannot be had."""
    route = _Route(writer, reader)
    wanted = reader.root if reader else None
    faults: list[AvroColumn] = []

    def build(fields: tuple[Field, ...]) -> Build | None:
        try:
            return route.record(writer.root, wanted, fields)
        except _UnresolvedError as error:
            faults.append(AvroColumn(error.path[1:], error.why, error.can_default))
            return None

    for field in columns.fields:
        build((field,))
    return None if faults else build(columns.fields), tuple(faults)


@dataclass(frozen=True, slots=True)
class _Route:
    """From one schema to another; without a reader's, values are what they were written as."""

    writer: AvroSchema
    reader: AvroSchema | None

    def record(self, kind: Record, wanted: Record | None, fields: tuple[Field, ...]) -> Build:
        slots: dict[str, tuple[int, AvroField | None]] = {}
        defaults = []
        for slot, field in enumerate(fields):
            written, part = _written(kind, wanted, field.name)
            if written in slots:
                why = f"it and {fields[slots[written][0]].name!r} are both written as {written!r}"
                raise _UnresolvedError(why, f".{field.name}")
            if written is not None:
                slots[written] = slot, part
            elif part is not None:
                defaults.append((field.name, self._default(part, field), slot))
        parts: list[tuple[str, Step, int | None]] = []
        for part in kind.parts:
            if part.name in slots:
                slot, target = slots[part.name]
                step = self._field(part, target, fields[slot])
                parts.append((fields[slot].name, step, slot))
            else:
                parts.append((part.name, SkipValue(part.type, self.writer), None))
        return Build(tuple(parts), tuple(defaults), len(fields))

    def _field(self, part: AvroField, target: AvroField | None, field: Field) -> Step:
        try:
            wanted = target.type if target else None
            return self.step(part.type, wanted, field.type, nullable=field.nullable)
        except _UnresolvedError as error:
            error.path = f".{field.name}{error.path}"
            raise

    def _default(self, part: AvroField, field: Field) -> Default:
        assert self.reader is not None
        if not part.has_default:
            why = f"records written by {self.writer.origin} lack it, and it has no default"
            raise _UnresolvedError(why, f".{field.name}", can_default=True)
        if part.default is None and not field.nullable:
            why = f"its default is null, and the column is {_word(field.type)} NOT NULL"
            raise _UnresolvedError(why, f".{field.name}")
        try:
            raw = encode(self.reader, part.type, part.default)
            step = _Route(self.reader, None)._field(part, None, field)
        except (AvroTextError, RecursionError) as error:
            raise _UnresolvedError(str(error), f".{field.name}") from None
        return Default(raw, step)

    def step(self, kind: AvroType, wanted: AvroType | None, into: Type, *, nullable: bool) -> Step:
        kind = self.writer.definition(kind)
        if self.reader is not None and wanted is not None:
            wanted = self.reader.definition(wanted)
        if isinstance(kind, Union):
            return self._union(kind, wanted, into, nullable=nullable)
        if isinstance(wanted, Union):
            return self._of_union(kind, wanted, into, nullable=nullable)
        if wanted is not None and not _matches(kind, wanted):
            why = f"it is written as {kind}, which cannot be read as {wanted}"
            raise _UnresolvedError(why)
        return self._single(kind, wanted, into, nullable=nullable)

    def _union(self, kind: Union, wanted: AvroType | None, into: Type, *, nullable: bool) -> Step:
        """Choose by what is met; a branch that cannot be had condemns the records that have it."""
        steps: list[Step] = []
        refused: list[_UnresolvedError] = []
        for branch in kind.branches:
            try:
                steps.append(self.step(branch, wanted, into, nullable=nullable))
            except _UnresolvedError as error:
                steps.append(Refuse(f"expected {_word(into)}, got {branch}"))
                if branch != Primitive("null"):
                    refused.append(error)
        if refused and not any(not isinstance(s, Refuse | Nothing) for s in steps):
            raise refused[0] if len(refused) == 1 else _unfit(kind, into)
        return Choose(tuple(steps))

    def _of_union(self, kind: AvroType, wanted: Union, into: Type, *, nullable: bool) -> Step:
        """Take the branch of the same type, else the first that the value can be read as."""
        branches = [self._wanted(branch) for branch in wanted.branches]
        same = [branch for branch in branches if _is_same(kind, branch)]
        for branch in (*same, *branches):
            try:
                return self.step(kind, branch, into, nullable=nullable)
            except _UnresolvedError:
                continue
        why = f"it is written as {kind}, which cannot be read as {wanted} and be {_word(into)}"
        raise _UnresolvedError(why)

    def _wanted(self, kind: AvroType) -> AvroType:
        assert self.reader is not None
        return self.reader.definition(kind)

    def _single(
        self, kind: AvroType, wanted: AvroType | None, into: Type, *, nullable: bool
    ) -> Step:
        match kind, wanted, into:
            case Primitive("null"), _, _ if nullable:
                return Nothing()
            case Record(), (Record() | None), Struct(fields):
                return self.record(kind, wanted, fields)
            case Sequence(items), (Sequence() | None), Array(element, contains_null):
                below = wanted and wanted.items
                step = self._inside(items, below, element, nullable=contains_null)
                return List(step, is_weightless=self._is_weightless(items, frozenset()))
            case Dictionary(values), (Dictionary() | None), Map(of, contains_null):
                below = wanted and wanted.values
                return Dict(self._inside(values, below, of, nullable=contains_null))
            case _, _, Atom() | Decimal():
                return _leaf(kind, wanted or kind, into)
        raise _unfit(wanted or kind, into)

    def _inside(
        self, kind: AvroType, wanted: AvroType | None, into: Type, *, nullable: bool
    ) -> Step:
        try:
            return self.step(kind, wanted, into, nullable=nullable)
        except _UnresolvedError as error:
            error.path = f"[]{error.path}"
            raise

    def _is_weightless(self, kind: AvroType, above: frozenset[str]) -> bool:
        match self.writer.definition(kind):
            case Primitive("null") | Fixed(size=0):
                return True
            case Record(name, parts):
                below = above | {name}
                return name in above or all(self._is_weightless(p.type, below) for p in parts)
        return False


def _leaf(kind: AvroType, wanted: AvroType, into: Atom | Decimal) -> Read:
    match kind, wanted:
        case Enumeration(), Enumeration(symbols=known) if into is Atom.STRING:
            symbols = tuple(s if s in known else wanted.default for s in kind.symbols)
            return Read("enum", Conversion("keep", into), symbols=symbols, name=kind.name)
        case Fixed(), Fixed():
            return Read("fixed", _conversion(wanted, "fixed", into), size=kind.size, name=kind.name)
        case Primitive(), Primitive():
            turn = _conversion(wanted, wanted.name, into)
            if kind.name in ("int", "long") and wanted.name in ("float", "double"):
                turn = Conversion("single" if wanted.name == "float" else "real", into)
            return Read(cast("Wire", kind.name), turn)
    raise _unfit(wanted, into)


def _written(kind: Record, wanted: Record | None, name: str) -> tuple[str | None, AvroField | None]:
    """Find what a column's field was written as, and what the reader says of it."""
    names = {part.name for part in kind.parts}
    if wanted is None:
        if name in names:
            return name, None
        why = f"{kind} has no such field"
        raise _UnresolvedError(why, f".{name}", can_default=True)
    part = next((part for part in wanted.parts if part.name == name), None)
    if part is None:
        why = f"the reader's {wanted} has no such field"
        raise _UnresolvedError(why, f".{name}")
    return next((n for n in (name, *part.aliases) if n in names), None), part


def _matches(kind: AvroType, wanted: AvroType) -> bool:
    match kind, wanted:
        case Primitive(), Primitive():
            promotions = _PROMOTIONS.get(kind.name, (kind.name,))
            return wanted.name in promotions and _same_sense(kind.logical, wanted.logical)
        case Fixed(), Fixed():
            same = kind.size == wanted.size and _same_sense(kind.logical, wanted.logical)
            return same and wanted.is_known_as(kind)
        case Named(), Named():
            return type(kind) is type(wanted) and wanted.is_known_as(kind)
    return type(kind) is type(wanted)


def _is_same(kind: AvroType, branch: AvroType) -> bool:
    if isinstance(kind, Primitive) and isinstance(branch, Primitive):
        return kind.name == branch.name
    return type(kind) is type(branch)


def _same_sense(written: Logical | None, wanted: Logical | None) -> bool:
    """Return whether two logical types may stand for the same thing."""
    return written is None or wanted is None or written == wanted


def _conversion(kind: Primitive | Fixed, plain: str, into: Type) -> Conversion:
    """Find what becomes of a value: by what it stands for, or else by what it is."""
    if kind.logical and (conversion := _logical_conversion(kind.logical, plain, into)):
        return conversion
    if do := _PLAIN.get(plain, {}).get(into):
        return Conversion(do, into)  # type: ignore[arg-type]
    raise _unfit(kind, into)


def _logical_conversion(logical: Logical, plain: str, into: Type) -> Conversion | None:
    name, _, unit = logical.name.rpartition("-")
    match name, into:
        case "timestamp", Atom.TIMESTAMP:
            return Conversion("instant", into, by=_UNITS[unit])
        case "local-timestamp", Atom.TIMESTAMP_NTZ:
            return Conversion("instant", into, by=_UNITS[unit])
    match logical.name, into:
        case "date", Atom.DATE:
            return Conversion("fit", into)
        case "uuid", Atom.STRING:
            return Conversion("uuid bytes" if plain == "fixed" else "uuid", into)
        case "decimal", Decimal(precision, scale):
            whole = logical.precision - logical.scale
            if precision - scale >= whole and scale >= logical.scale:
                return Conversion("decimal", into, scale=logical.scale)
    return None


def _unfit(kind: AvroType, into: Type) -> _UnresolvedError:
    return _UnresolvedError(f"it is {kind}, which cannot be {_word(into)}")


def _word(into: Type) -> str:
    return type_ddl(into).partition("<")[0]

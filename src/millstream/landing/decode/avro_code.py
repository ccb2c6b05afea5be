"""How the steps of an Avro record become a Python function.

A function of plain statements takes about the time that a library's compiled reader takes, and
unlike that it refuses what the specification does not allow, and says where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.landing.decode import avro_statement as write
from millstream.landing.decode.avro_value import NAMES, FaultError, row_type
from millstream.landing.decode.column import DAYS, MICROS, attribute
from millstream.model.avro.kind import (
    Dictionary,
    Enumeration,
    Fixed,
    Primitive,
    Record,
    Sequence,
    Union,
)
from millstream.model.avro.step import Build, Choose, Dict, List, Nothing, Read, Refuse, SkipValue
from millstream.model.data_type import Atom, Decimal, Type, type_ddl

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.model.avro.kind import AvroSchema, AvroType
    from millstream.model.avro.step import Conversion, Step

_BOUNDS: dict[Type, tuple[int, int]] = {
    Atom.TINYINT: (-(2**7), 2**7 - 1),
    Atom.SMALLINT: (-(2**15), 2**15 - 1),
    Atom.DATE: DAYS,
    Atom.TIMESTAMP: MICROS,
    Atom.TIMESTAMP_NTZ: MICROS,
}
_WIRE = {
    "boolean": write.BOOLEAN,
    "int": write.INT,
    "long": write.NUMBER,
    "float": write.FLOAT,
    "double": write.DOUBLE,
    "bytes": write.BYTES,
    "string": write.BYTES,
}
_PASSED = {
    "null": [],
    "float": write.passed(4),
    "double": write.passed(8),
    "bytes": [*write.LENGTH, *write.passed("v")],
    "string": write.TEXT,
}


def compiled(step: Build) -> Callable[[bytes, int], Any]:
    """Make the function that reads a record, from a byte on, as an object with attributes."""
    made = compiled_one_of_many(step)

    def read(raw: bytes, start: int) -> Any:
        row, end = made(raw, start)
        if end != len(raw):
            rest = len(raw) - end
            what = f"{rest} byte{'s' if rest > 1 else ''} left over after the record"
            raise FaultError(what)
        return row

    return read


def compiled_one_of_many(step: Build) -> Callable[[bytes, int], tuple[Any, int]]:
    """Make the function that reads a record, from a byte on, and returns where it ends."""
    made: Callable[[bytes, int], tuple[Any, int]] = _Code().made(step)
    return made


class _Code:
    """The generated functions, one for each step with parts; they take and return the position."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names: dict[str, Any] = dict(NAMES)
        self._skips: dict[str, str] = {}

    def made(self, step: Build) -> Any:
        name = self._function(step)
        exec("\n".join(self._lines), self._names)
        return self._names[name]

    def _function(self, step: Build | List | Dict) -> str:
        match step:
            case Build():
                body = self._build(step)
            case List():
                body = self._list(step)
            case Dict():
                body = self._dict(step)
        return self._defined(self._named("read"), body)

    def _build(self, step: Build) -> list[str]:
        parts = self._constant([f".{name}" for name, _, _ in step.parts])
        lines = ["p = 0"]
        for number, (_, part, slot) in enumerate(step.parts):
            lines += [f"p = {number}"] if number else []
            lines += self._value(part, "v" if slot is None else attribute(slot))
        defaults = {slot: self._constant(_default(d.raw, d.step)) for _, d, slot in step.defaults}
        values = ", ".join(defaults.get(slot, attribute(slot)) for slot in range(step.width))
        lines.append(f"return {self._constant(row_type(step.width))}({values}), i")
        return write.tried(lines, f"{parts}[p]") if step.parts else lines

    def _list(self, step: List) -> list[str]:
        item = [*self._value(step.item, "v"), "add(v)"]
        room = f"{write.WEIGHTLESS} - len(found)" if step.is_weightless else "size - i"
        lines = [*write.blocks(item, room=room), "return found, i"]
        return ["found = []", "add = found.append", *write.tried(lines, 'f"[{len(found)}]"')]

    def _dict(self, step: Dict) -> list[str]:
        value = self._value(step.value, "v")
        entry = [*write.TEXT, "key = v", *value, "found[key] = v", "key = None"]
        lines = [*write.blocks(entry, room="size - i"), "return found, i"]
        place = '"" if key is None else f".{key}"'
        return ["found = {}", "key = None", *write.tried(lines, place)]

    def _value(self, step: Step, into: str) -> list[str]:
        """Generate the lines that read a value into a variable."""
        match step:
            case Nothing():
                return [f"{into} = None"]
            case Refuse():
                return [f"raise Fault({step.reason!r})"]
            case SkipValue():
                return self._skip(step.schema, step.kind)
            case Choose():
                return write.chosen([self._value(branch, into) for branch in step.branches])
            case Read():
                return [*self._wire(step), *_turn(step.turn, into)]
            case Build() | List() | Dict():
                return [f"{into}, i = {self._function(step)}(raw, i)"]

    def _wire(self, step: Read) -> list[str]:
        if step.wire == "fixed":
            return [f"n = i + {step.size}", *write.SLICE]
        if step.wire != "enum":
            return _WIRE[step.wire]
        number = write.symbol(step.name, len(step.symbols))
        lines = [*number, f"n, v = v, {self._constant(step.symbols)}[v]"]
        if None in step.symbols:
            unknown = f"symbol {{n}} of enum {step.name} is unknown to the reader"
            lines += ["if v is None:", *write.refuse(unknown)]
        return lines

    def _skip(self, schema: AvroSchema, kind: AvroType) -> list[str]:
        """Generate the lines that skip a value; it must be valid even if no column wants it."""
        match kind := schema.definition(kind):
            case Primitive(name):
                return _PASSED[name] if name in _PASSED else _WIRE[name]
            case Fixed(size=size):
                return write.passed(size)
            case Enumeration(name, symbols):
                return write.symbol(name, len(symbols))
            case Union(branches):
                return write.chosen([self._skip(schema, branch) for branch in branches])
            case _:
                return [f"i = {self._skipping(schema, kind)}(raw, i)"]

    def _skipping(self, schema: AvroSchema, kind: AvroType) -> str:
        """Return the function that skips a record, which may contain its like, or a list."""
        match kind:
            case Record(name, parts):
                if name not in self._skips:
                    self._skips[name] = self._named("skip")
                    lines = [line for part in parts for line in self._skip(schema, part.type)]
                    self._defined(self._skips[name], [*lines, "return i"])
                return self._skips[name]
            case Sequence(items):
                room = f"max(size - i, {write.WEIGHTLESS})"
                lines = write.blocks(self._skip(schema, items), room=room)
            case Dictionary(values):
                entry = [*write.TEXT, *self._skip(schema, values)]
                lines = write.blocks(entry, room="size - i")
        return self._defined(self._named("skip"), [*lines, "return i"])

    def _defined(self, name: str, body: list[str]) -> str:
        lines = ["size = len(raw)", *body]
        self._lines += [f"def {name}(raw, i):", *write.indented(lines)]
        return name

    def _constant(self, value: Any) -> str:
        name = self._named("given")
        self._names[name] = value
        return name

    def _named(self, word: str) -> str:
        name = f"{word}{len(self._names)}"
        self._names[name] = None
        return name


def _default(raw: bytes, step: Step) -> Any:
    """Read a default as if it were a record of its own."""
    only = Build((("default", step, 0),), (), 1)
    return getattr(compiled(only)(raw, 0), attribute(0))


def _turn(turn: Conversion, into: str) -> list[str]:  # noqa: PLR0911 - a return for each turn
    """Generate the lines that convert a value as written into the one that is wanted."""
    match turn.do:
        case "keep":
            return [f"{into} = v"]
        case "real":
            return [f"{into} = float(v)"]
        case "single":
            return [f"{into} = single(v)"]
        case "fit":
            return [*write.bounded(_BOUNDS[turn.into], type_ddl(turn.into)), f"{into} = v"]
        case "instant":
            lines = [f"v *= {turn.by}" if turn.by > 0 else f"v //= {-turn.by}"]
            bounds = write.bounded(_BOUNDS[turn.into], type_ddl(turn.into))
            return [*(lines if turn.by != 1 else ()), *bounds, f"{into} = v"]
        case "text":
            return [f'{into} = str(v, "utf-8")']
        case "uuid":
            refusal = write.refuse("expected uuid, got {str(v[:40], 'utf-8', 'replace')!r}")
            return ["if not is_uuid(v):", *refusal, f'{into} = str(v, "utf-8")']
        case "uuid bytes":
            return [f"{into} = uuid(v)"]
        case "decimal":
            return _decimal(turn, into)


def _decimal(turn: Conversion, into: str) -> list[str]:
    assert isinstance(turn.into, Decimal)
    beyond = 10 ** (turn.into.precision - turn.into.scale + turn.scale)
    bounds, scale = (1 - beyond, beyond - 1), turn.scale
    return [
        'v = int.from_bytes(v, "big", signed=True)',
        *write.bounded(bounds, type_ddl(turn.into), f"shown(v, {scale})"),
        f"{into} = scaled(v, {scale})",
    ]

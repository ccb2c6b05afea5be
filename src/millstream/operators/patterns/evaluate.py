"""Comparisons of a row with earlier steps, evaluated in Python as Spark would.

What cannot be evaluated exactly as in Spark is refused. Integers do not overflow here. Values are
as they come from JSON: timestamps in microseconds, dates in days since 1970, decimals as text.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from millstream.operators.patterns.condition import aggregates, path_of, refuse, step_references
from millstream.operators.patterns.fold import DIGITS, FOLDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from millstream.operators.patterns.condition import Path

Seen = list[Any]
"""The values of a row that conditions read."""
Past = Callable[[int], Sequence[Seen]]
"""Returns the rows that a step has taken so far, by its number."""
Kind = Literal[
    "integer", "double", "float", "decimal", "string", "boolean",
    "timestamp", "date", "interval", "null",
]  # fmt: skip

Digits = tuple[int, int]
"""How many digits a decimal has in all, and after the point."""

_MOST_DIGITS = 38
_SUM_GROWS = 10
_WHOLE: Digits = (20, 0)
"""Those of any integer, to Spark."""
_NUMBERS = ("integer", "double", "float", "decimal")
_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}


@dataclass(frozen=True, slots=True)
class TypedExpression:
    """A part of a condition, ready to evaluate."""

    kind: Kind
    value: Callable[[Seen, Past], Any]
    digits: Digits | None = None
    """Of a decimal, or of an integer that is written out, if they are known."""


@dataclass(frozen=True, slots=True)
class NameScope:
    """What the names in a condition mean."""

    columns: Mapping[Path, tuple[int, Kind]]
    """The position of a column in the values of a row, and its type."""
    steps: Mapping[str, int]
    """The numbers of steps."""
    digits: Mapping[Path, Digits] = field(default_factory=dict)
    """Those of columns that are decimals, as far as they are known."""

    def column(self, path: Path) -> TypedExpression:
        """The value of a column; one of a step is that of its last row."""
        is_past = len(path) > 1 and path[0] in self.steps
        name = path[1:] if is_past else path
        if name not in self.columns:
            refuse(f"{'.'.join(name)} is not a column that can be compared")
        (place, kind), step = self.columns[name], self.steps.get(path[0], -1)
        read = _READ.get(kind, _identity)

        def last(_: Seen, past: Past) -> Any:
            rows = past(step)
            return None if not rows or rows[-1][place] is None else read(rows[-1][place])

        def current(now: Seen, _: Past) -> Any:
            return None if now[place] is None else read(now[place])

        return TypedExpression(kind, last if is_past else current, self.digits.get(name))


def judge(expression: exp.Expr, scope: NameScope) -> TypedExpression:
    """Make a condition ready: true, false or None for each row.

    Raises:
        NotAConditionError: It is not boolean, or cannot be judged exactly as Spark does.
    """
    typed = typed_part(expression, scope)
    if typed.kind not in ("boolean", "null"):
        refuse(f"it is of type {typed.kind}, not a condition")
    return typed


def typed_part(node: exp.Expr, scope: NameScope) -> TypedExpression:
    """Make a part of a condition ready.

    Raises:
        NotAConditionError: It cannot be judged exactly as Spark does.
    """
    from sqlglot import exp

    inner = node.unnest()
    for kinds, make in _RULES.items():
        if isinstance(inner, tuple(getattr(exp, kind) for kind in kinds.split())):
            return make(inner, scope)
    if name := aggregates().get(type(inner)):
        return _aggregate(name, inner, scope)
    return refuse(f"{inner.sql(dialect='spark')} cannot be judged together with other steps")


def _identity(value: Any) -> Any:
    return value


_READ: dict[Kind, Callable[[Any], Any]] = {"decimal": Decimal, "double": float, "float": float}


def _lifted(kind: Kind, function: Callable[..., Any], *parts: TypedExpression) -> TypedExpression:
    """Null if a part is null, else what a function makes of them."""

    def value(now: Seen, past: Past) -> Any:
        values = [part.value(now, past) for part in parts]
        return None if None in values else function(*values)

    return TypedExpression(kind, value)


def _column(node: Any, scope: NameScope) -> TypedExpression:
    from sqlglot import exp

    return scope.column(path_of(next(node.find_all(exp.Column))))


def _constant(node: Any, _: NameScope) -> TypedExpression:
    from sqlglot import exp

    kind: Kind
    value: Any
    digits: Digits | None = None
    if isinstance(node, exp.Null):
        kind, value = "null", None
    elif isinstance(node, exp.Boolean):
        kind, value = "boolean", bool(node.this)
    elif node.is_string:
        kind, value = "string", node.name
    elif node.is_int:
        kind, value, digits = "integer", int(node.name), (len(node.name), 0)
    elif "e" in node.name.lower():
        kind, value = "double", float(node.name)
    else:
        kind, value = "decimal", Decimal(node.name)
        _, shown, exponent = value.as_tuple()
        digits = max(len(shown), -exponent), -exponent
    return TypedExpression(kind, lambda *_: value, digits)


def _interval(node: Any, _: NameScope) -> TypedExpression:
    unit = (node.unit.name if node.unit else "").upper().removesuffix("S")
    if not node.this.name.isdigit() or unit not in _MICROSECONDS:
        refuse(f"{node.sql(dialect='spark')} is not a whole number of weeks, days, hours, …")
    length = int(node.this.name) * _MICROSECONDS[unit]
    return TypedExpression("interval", lambda *_: length)


def _connector(node: Any, scope: NameScope) -> TypedExpression:
    parts = [judge(part, scope) for part in (node.this, node.expression)]
    return _joined(parts, decides=node.key == "or")


def _joined(parts: Sequence[TypedExpression], *, decides: bool) -> TypedExpression:
    """AND, which one false decides, or OR, which one true does."""

    def value(now: Seen, past: Past) -> bool | None:
        is_known = True
        for part in parts:
            found: bool | None = part.value(now, past)
            if found is decides:
                return decides
            is_known = is_known and found is not None
        return not decides if is_known else None

    return TypedExpression("boolean", value)


def _not(node: Any, scope: NameScope) -> TypedExpression:
    return _lifted("boolean", operator.not_, judge(node.this, scope))


_ORDERED: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "neq": operator.ne,
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}


def _comparison(node: Any, scope: NameScope) -> TypedExpression:
    return _compared(node.key, typed_part(node.this, scope), typed_part(node.expression, scope))


def _compared(key: str, one: TypedExpression, other: TypedExpression) -> TypedExpression:
    compare, convert = _ORDERED[key], _identity
    kinds = {one.kind, other.kind}
    if kinds <= {*_NUMBERS} and kinds & {"double", "float"}:
        convert = _floating
    elif not kinds <= {*_NUMBERS} and len(kinds - {"null"}) > 1:
        refuse(f"it compares {one.kind} with {other.kind}")
    return _lifted("boolean", lambda a, b: compare(convert(a), convert(b)), one, other)


def _floating(value: Any) -> tuple[bool, float]:
    """Order numbers as Spark does: NaN equals itself and is greater than any other."""
    number = float(value)
    return (True, 0.0) if math.isnan(number) else (False, number)


def _null_safe(node: Any, scope: NameScope) -> TypedExpression:
    one, other = typed_part(node.this, scope), typed_part(node.expression, scope)
    equal = _compared("eq", one, other)

    def value(now: Seen, past: Past) -> bool:
        found = equal.value(now, past)
        if found is not None:
            return bool(found)
        return one.value(now, past) is None and other.value(now, past) is None

    return TypedExpression("boolean", value)


def _is(node: Any, scope: NameScope) -> TypedExpression:
    inner, wanted = typed_part(node.this, scope), typed_part(node.expression, scope)
    if wanted.kind != "null" and {inner.kind, wanted.kind} != {"boolean"}:
        refuse(f"{node.sql(dialect='spark')} is not IS NULL or IS TRUE")
    return TypedExpression(
        "boolean", lambda now, past: inner.value(now, past) is wanted.value(now, past)
    )


def _between(node: Any, scope: NameScope) -> TypedExpression:
    low, inner, high = (
        typed_part(part, scope) for part in (node.args["low"], node.this, node.args["high"])
    )
    return _joined([_compared("lte", low, inner), _compared("lte", inner, high)], decides=False)


def _in(node: Any, scope: NameScope) -> TypedExpression:
    if not node.expressions:
        refuse(f"{node.sql(dialect='spark')} lists no values")
    inner = typed_part(node.this, scope)
    equal = [_compared("eq", inner, typed_part(e, scope)) for e in node.expressions]
    return _joined(equal, decides=True)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}


def _arithmetic(node: Any, scope: NameScope) -> TypedExpression:
    one, other = typed_part(node.this, scope), typed_part(node.expression, scope)
    kind, compute = _result(node.key, one.kind, other.kind), _ARITHMETIC[node.key]
    if kind == "double":
        return _lifted(kind, lambda a, b: compute(float(a), float(b)), one, other)
    if kind == "decimal":
        compute = DIGITS.add if node.key == "add" else DIGITS.subtract
        digits = _digits(one, other, carry=1, rendered=node.sql(dialect="spark"))
        return replace(_lifted(kind, compute, one, other), digits=digits)
    return _lifted(kind, compute, one, other)


def _digits(*parts: TypedExpression, carry: int = 0, rendered: str) -> Digits | None:
    """Return the digits that hold each of several decimals, and their sum if one is carried."""
    every = [part.digits or (_WHOLE if part.kind == "integer" else None) for part in parts]
    known = [digits for digits in every if digits is not None]
    if len(known) < len(every):
        return None
    after = max(scale for _, scale in known)
    most = max(precision - scale for precision, scale in known) + after + carry
    if most > _MOST_DIGITS:
        refuse(f"{rendered} may need {most} digits, and Spark rounds beyond {_MOST_DIGITS}")
    return most, after


def _result(key: str, one: Kind, other: Kind) -> Kind:
    kinds = {one, other}
    if kinds == {"integer"}:
        return "integer"
    if "double" in kinds and kinds <= {*_NUMBERS}:
        return "double"
    if kinds <= {"integer", "decimal"} and key != "mul":
        return "decimal"
    if one == "timestamp" and other == "interval" and key != "mul":
        return "timestamp"
    if (one, other, key) in (("timestamp", "timestamp", "sub"), ("interval", "interval", "sub")):
        return "interval"
    return refuse(f"{key} of {one} and {other} is not done exactly as in Spark")


def _unary(node: Any, scope: NameScope) -> TypedExpression:
    inner = typed_part(node.this, scope)
    if inner.kind not in _NUMBERS:
        refuse(f"{node.sql(dialect='spark')} is of {inner.kind}")
    if inner.kind == "decimal":
        turned = Decimal.copy_negate if node.key == "neg" else Decimal.copy_abs
        return replace(_lifted("decimal", turned, inner), digits=inner.digits)
    return _lifted(inner.kind, operator.neg if node.key == "neg" else abs, inner)


def _coalesce(node: Any, scope: NameScope) -> TypedExpression:
    parts = [typed_part(part, scope) for part in (node.this, *node.expressions)]
    kinds = {part.kind for part in parts} - {"null"}
    if len(kinds) > 1:
        refuse(f"coalesce is given {' and '.join(sorted(kinds))}")
    decimals = [part for part in parts if part.kind == "decimal"]
    digits = _digits(*decimals, rendered=node.sql(dialect="spark")) if decimals else None

    def first(now: Seen, past: Past) -> Any:
        found = (part.value(now, past) for part in parts)
        return next((value for value in found if value is not None), None)

    return TypedExpression(next(iter(kinds), "null"), first, digits)


def _aggregate(name: str, node: Any, scope: NameScope) -> TypedExpression:
    from sqlglot import exp

    steps, rendered = step_references(node, scope.steps), node.sql(dialect="spark")
    if len(steps) != 1:
        refuse(f"{rendered} is not over one step")
    [step] = steps
    number = scope.steps[step]
    if name == "count" and node.find(exp.Star):
        return TypedExpression("integer", lambda _, past: len(past(number)))
    # Inside, each row of the step stands for itself.
    of_row = NameScope(
        {(step, *path): place for path, place in scope.columns.items()},
        {},
        {(step, *path): digits for path, digits in scope.digits.items()},
    )
    inner = typed_part(node.this, of_row)
    kind, fold = FOLDS[name](inner.kind, rendered)

    def value(_: Seen, past: Past) -> Any:
        values = [inner.value(row, past) for row in past(number)]
        return fold(values if name in ("first", "last") else [v for v in values if v is not None])

    digits = inner.digits if kind == "decimal" else None
    if digits and name == "sum":
        digits = min(digits[0] + _SUM_GROWS, _MOST_DIGITS), digits[1]
    return TypedExpression(kind, value, digits)


_RULES: dict[str, Callable[[Any, NameScope], TypedExpression]] = {
    "Column Dot": _column,
    "Null Boolean Literal": _constant,
    "Interval": _interval,
    "And Or": _connector,
    "Not": _not,
    "EQ NEQ LT LTE GT GTE": _comparison,
    "NullSafeEQ": _null_safe,
    "Is": _is,
    "Between": _between,
    "In": _in,
    "Add Sub Mul": _arithmetic,
    "Neg Abs": _unary,
    "Coalesce": _coalesce,
}

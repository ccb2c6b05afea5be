"""Conditions, parsed: the part that reads one row only, and the part on earlier steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from sqlglot import exp

Path = tuple[str, ...]
"""The name of a column, or of a field in it."""


class NotAConditionError(ValueError):
    """A text is not a condition; the message says why."""


def refuse(why: str) -> NoReturn:
    """Raise, with the reason why a text is not a condition."""
    raise NotAConditionError(why)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in two parts, both of which must be true."""

    text: str
    alone: exp.Expr | None
    """The part on the row alone; Spark evaluates it."""
    compared: exp.Expr | None
    """The part that compares the row with earlier steps; evaluated in Python."""


def parse(text: str, steps: Collection[str]) -> Condition:
    """Read a condition in Spark's SQL.

    Args:
        text: The condition.
        steps: The steps it may refer to.

    Raises:
        NotAConditionError: It cannot be read, or is something else.
    """
    whole = _parsed(text)
    if not _may_be_boolean(whole):
        refuse(f"it is {_described(whole)}, not a condition")
    from sqlglot import exp

    parts: dict[bool, list[exp.Expr]] = {True: [], False: []}
    for part in _conjuncts(whole):
        _check_aggregates(part, steps)
        parts[bool(step_references(part, steps))].append(part)
    alone, compared = (exp.and_(*p) if p else None for p in (parts[False], parts[True]))
    return Condition(text, alone, compared)


def can_name_step(name: str) -> bool:
    """Whether a name can stand before a dot; a keyword of SQL cannot.

    >>> can_name_step("small"), can_name_step("then")
    (True, False)
    """
    try:
        return references(f"{name}.x") == {name}
    except NotAConditionError:
        return False


def references(text: str) -> set[str]:
    """Return the names before a dot in a condition: steps, or columns that are structs.

    Raises:
        NotAConditionError: It cannot be read.
    """
    from sqlglot import exp

    columns = _parsed(text).find_all(exp.Column)
    return {parts[0] for column in columns if len(parts := path_of(column)) > 1}


def step_references(expression: exp.Expr, steps: Collection[str]) -> set[str]:
    """Return the steps that an expression refers to."""
    from sqlglot import exp

    columns = map(path_of, expression.find_all(exp.Column))
    return {path[0] for path in columns if len(path) > 1 and path[0] in steps}


def path_of(column: exp.Column) -> Path:
    """Return the names of a column: a.b.c is a, b, c."""
    names = [part.name for part in column.parts]
    node: Any = column
    while node.parent is not None and node.parent.key == "dot" and node.parent.this is node:
        node = node.parent
        names.append(node.expression.name)
    return tuple(names)


def aggregates() -> dict[type[exp.Expr], str]:
    """Return the aggregates over the rows of a step, by their class."""
    from sqlglot import exp

    return {
        exp.Sum: "sum",
        exp.Avg: "avg",
        exp.Min: "min",
        exp.Max: "max",
        exp.Count: "count",
        exp.First: "first",
        exp.Last: "last",
    }


def read_list(text: str, wanted: str) -> exp.Select:
    """Read expressions with commas between them, as they stand after SELECT.

    By themselves, some that begin with a word such as `load` would be read as a command.

    Args:
        text: The expressions.
        wanted: What they should be.

    Raises:
        NotAConditionError: They cannot be read, or something else comes with them.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if not text.strip():
        refuse("it is empty")
    try:
        found = sqlglot.parse(f"SELECT {text}", dialect="spark")
    except SqlglotError as error:
        faults = getattr(error, "errors", None) or [{"description": str(error)}]
        message = str(faults[0]["description"]).splitlines()[0].partition(" for <")[0]
        refuse(f"it cannot be read ({message})")
    query = found[0]
    if len(found) != 1 or not isinstance(query, exp.Select) or _clauses(query) != ["expressions"]:
        refuse(f"it is not {wanted}")
    return query


def _clauses(query: exp.Select) -> list[str]:
    return [name for name, value in query.args.items() if value]


@lru_cache(maxsize=1024)
def _parsed(text: str) -> exp.Expr:
    from sqlglot import exp

    wanted = "one condition"
    found = read_list(text, wanted).expressions
    if len(found) != 1:
        refuse(f"it is not {wanted}")
    if found[0].find(exp.Query, exp.Window):
        refuse("it holds a query or a window")
    condition: exp.Expr = found[0].pop()
    return condition


def _conjuncts(expression: exp.Expr) -> Iterator[exp.Expr]:
    from sqlglot import exp

    inner = expression.unnest()
    if isinstance(inner, exp.And):
        yield from _conjuncts(inner.this)
        yield from _conjuncts(inner.expression)
    else:
        yield inner


def _may_be_boolean(expression: exp.Expr) -> bool:
    from sqlglot import exp

    inner = expression.unnest()
    if isinstance(inner, exp.Literal | exp.Neg | exp.Interval | exp.Alias):
        return False
    return not isinstance(inner, exp.Binary) or isinstance(
        inner, exp.Predicate | exp.Connector | exp.Dot
    )


def _described(expression: exp.Expr) -> str:
    return f"{expression.unnest().key} ({expression.sql(dialect='spark')})"


def _check_aggregates(expression: exp.Expr, steps: Collection[str]) -> None:
    from sqlglot import exp

    for call in expression.find_all(*aggregates()):
        if not isinstance(call, exp.Expr) or step_references(call, steps):
            continue
        rendered = call.sql(dialect="spark")
        refuse(f"{rendered} is of no step; write {call.key}(step.column)")

"""A call of a function, and how a translation is declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from millstream.sql.refusal import refuse
from millstream.sql.scope import Typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp

    from millstream.sql.expression import Expressions
    from millstream.sql.scope import Scope
    from millstream.sql.types import Type


@dataclass(frozen=True, slots=True)
class Call:
    """A function and what it is given."""

    expressions: Expressions
    node: exp.Expr
    name: str
    given: tuple[exp.Expr, ...]
    scope: Scope
    suffix: str = ""
    """FILTER and OVER, in DuckDB's SQL."""

    def value(self, index: int) -> Typed:
        """Translate an argument."""
        return self.expressions.translate(self.given[index], self.scope)

    def values(self) -> list[Typed]:
        """Translate all arguments."""
        return [self.value(index) for index in range(len(self.given))]

    def to(self, index: int, wanted: Type) -> str:
        """Translate an argument that must be, or become, of a type."""
        return self.expressions.to(self.value(index), wanted, self.node)

    def of(self, index: int, *kinds: str) -> Typed:
        """Translate an argument that must be of one of these kinds."""
        value = self.value(index)
        return value if value.type.kind in kinds else self.refuse(f"{self.name}({value.type})")

    def text(self, index: int) -> str | None:
        """Give a string that is written out; None if it is not."""
        literal = self.value(index).literal
        return literal if isinstance(literal, str) else None

    def number(self, index: int) -> int | None:
        """Give a whole number that is written out; None if it is not."""
        literal = self.value(index).literal
        return literal if isinstance(literal, int) else None

    def refuse(self, what: str = "") -> NoReturn:
        """Say that this call has no translation."""
        refuse(self.node, what)


@dataclass(frozen=True, slots=True)
class Function:
    """How a function is translated, and with how many arguments."""

    build: Callable[[Call], Typed]
    least: int = 1
    most: int = 1
    kind: str = "scalar"
    """`scalar`, `aggregate` (which may have OVER) or `window` (which must)."""


def plainly(template: str, gives: Type, *wanted: Type) -> Function:
    """Translate by a template, after its arguments have become of these types."""

    def build(call: Call) -> Typed:
        given = [call.to(index, kind) for index, kind in enumerate(wanted)]
        return Typed(template.format(*given), gives)

    return Function(build, len(wanted), len(wanted))


def literal(text: str) -> str:
    """Write a string for DuckDB.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"

"""A call of a function, and how a translation is declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from millstream.sql.refusal import refuse
from millstream.sql.scope import TypedSql

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp

    from millstream.sql.expression import Expressions
    from millstream.sql.scope import SqlScope
    from millstream.sql.types import Type


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function, with its arguments."""

    expressions: Expressions
    node: exp.Expr
    name: str
    arguments: tuple[exp.Expr, ...]
    scope: SqlScope
    suffix: str = ""
    """FILTER and OVER, in DuckDB's SQL."""

    def value(self, index: int) -> TypedSql:
        """Translate an argument."""
        return self.expressions.translate(self.arguments[index], self.scope)

    def values(self) -> list[TypedSql]:
        """Translate all arguments."""
        return [self.value(index) for index in range(len(self.arguments))]

    def to(self, index: int, wanted: Type) -> str:
        """Translate an argument that must be, or become, of a type."""
        return self.expressions.to(self.value(index), wanted, self.node)

    def of(self, index: int, *kinds: str) -> TypedSql:
        """Translate an argument that must be of one of these kinds."""
        value = self.value(index)
        return value if value.type.kind in kinds else self.refuse(f"{self.name}({value.type})")

    def text(self, index: int) -> str | None:
        """Return an argument that is a string literal; None if it is not."""
        literal = self.value(index).literal
        return literal if isinstance(literal, str) else None

    def number(self, index: int) -> int | None:
        """Return an argument that is a whole-number literal; None if it is not."""
        literal = self.value(index).literal
        return literal if isinstance(literal, int) else None

    def refuse(self, what: str = "") -> NoReturn:
        """Raise that this call has no translation."""
        refuse(self.node, what)


@dataclass(frozen=True, slots=True)
class Function:
    """How a function is translated, and with how many arguments."""

    build: Callable[[Call], TypedSql]
    least: int = 1
    most: int = 1
    kind: str = "scalar"
    """`scalar`, `aggregate` (which may have OVER) or `window` (which must)."""


def from_template(template: str, gives: Type, *wanted: Type) -> Function:
    """Translate by a template, after its arguments have become of these types."""

    def build(call: Call) -> TypedSql:
        arguments = [call.to(index, kind) for index, kind in enumerate(wanted)]
        return TypedSql(template.format(*arguments), gives)

    return Function(build, len(wanted), len(wanted))

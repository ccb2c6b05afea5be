"""What a query answers: its text in DuckDB's SQL, its columns, and how it is cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.sql.refusal import refuse, unknown_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.sql.scope import Columns, Typed


@dataclass(frozen=True, slots=True)
class Answer:
    """A query in DuckDB's SQL, and the columns of its answer."""

    text: str
    columns: Columns


def numbered(key: exp.Expr, answers: Sequence[tuple[str, Typed]]) -> Typed | None:
    """Give the column of the answer that a number in GROUP BY or ORDER BY means."""
    if not isinstance(key, exp.Literal) or key.is_string or not key.name.isdigit():
        return None
    if not 1 <= int(key.name) <= len(answers):
        known = [name for name, _ in answers]
        raise unknown_column(key.name, known, key)
    return answers[int(key.name) - 1][1]


def cut(node: exp.Expr) -> str:
    """Translate LIMIT and OFFSET."""
    told = ""
    for key in ("limit", "offset"):
        if part := node.args.get(key):
            if not isinstance(part.expression, exp.Literal) or not part.expression.name.isdigit():
                refuse(node, key.upper())
            told += f" {key.upper()} {part.expression.name}"
    return told

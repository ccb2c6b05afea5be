"""Pattern matching: LIKE and regular expressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.sql.refusal import refuse
from millstream.sql.regex import to_re2
from millstream.sql.scope import SqlScope, TypedSql
from millstream.sql.types import BOOLEAN, STRING

if TYPE_CHECKING:
    from sqlglot import exp

    from millstream.sql.expression import Expressions


def like(
    expressions: Expressions, node: exp.Binary, scope: SqlScope, word: str, *, escape: str = "\\"
) -> TypedSql:
    """Translate LIKE or ILIKE."""
    value, pattern = (expressions.translate(n, scope) for n in (node.this, node.expression))
    form = pattern.literal
    if not isinstance(form, str) or (word == "ILIKE" and not form.isascii()):
        refuse(node, f"{word} with a pattern that is not a literal")
    bare = re.sub(re.escape(escape) + "[" + re.escape(escape) + "%_]", "", form)
    if escape in bare or len(escape) != 1:
        refuse(node)
    text = expressions.to(value, STRING, node)
    if word == "ILIKE":
        text = f"lower_case({text})"
        pattern = TypedSql(pattern.text.lower(), STRING)
    mark = escape.replace("'", "''")
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return TypedSql(f"({text} {word} {pattern.text} ESCAPE '{mark}')", BOOLEAN)


def regexp_like(expressions: Expressions, node: exp.RegexpLike, scope: SqlScope) -> TypedSql:
    """Translate RLIKE."""
    value, pattern = (expressions.translate(n, scope) for n in (node.this, node.expression))
    expression = (
        to_re2(pattern.literal, is_search=True) if isinstance(pattern.literal, str) else None
    )
    if expression is None:
        refuse(node, f"regular expression {node.expression.sql('spark')}")
    expression = expression.replace("'", "''")
    word = "NOT " if node.args.get("negate") else ""
    text = expressions.to(value, STRING, node)
    return TypedSql(f"({word}regexp_matches({text}, '{expression}'))", BOOLEAN)

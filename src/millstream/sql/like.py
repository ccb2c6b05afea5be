"""Texts held to a pattern: LIKE and regular expressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.sql.refusal import refuse
from millstream.sql.regex import to_re2
from millstream.sql.scope import Scope, Typed
from millstream.sql.types import BOOLEAN, STRING

if TYPE_CHECKING:
    from sqlglot import exp

    from millstream.sql.expression import Expressions


def like(
    expressions: Expressions, node: exp.Binary, scope: Scope, word: str, *, escape: str = "\\"
) -> Typed:
    """Translate LIKE or ILIKE."""
    value, pattern = (expressions.translate(n, scope) for n in (node.this, node.expression))
    said = pattern.literal
    if not isinstance(said, str) or (word == "ILIKE" and not said.isascii()):
        refuse(node, f"{word} with a pattern that is not written out")
    bare = re.sub(re.escape(escape) + "[" + re.escape(escape) + "%_]", "", said)
    if escape in bare or len(escape) != 1:
        refuse(node)
    text = expressions.to(value, STRING, node)
    if word == "ILIKE":
        text = f"lower_case({text})"
        pattern = Typed(pattern.text.lower(), STRING)
    mark = escape.replace("'", "''")
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return Typed(f"({text} {word} {pattern.text} ESCAPE '{mark}')", BOOLEAN)


def regexp_like(expressions: Expressions, node: exp.RegexpLike, scope: Scope) -> Typed:
    """Translate RLIKE."""
    value, pattern = (expressions.translate(n, scope) for n in (node.this, node.expression))
    said = to_re2(pattern.literal, is_search=True) if isinstance(pattern.literal, str) else None
    if said is None:
        refuse(node, f"regular expression {node.expression.sql('spark')}")
    said = said.replace("'", "''")
    word = "NOT " if node.args.get("negate") else ""
    text = expressions.to(value, STRING, node)
    return Typed(f"({word}regexp_matches({text}, '{said}'))", BOOLEAN)

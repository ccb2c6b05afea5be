"""What Spark may be asked: queries on the tables of a home, in constructs that read nothing else.

Spark's SQL can run programs, call Java and read any file. A query is parsed here first, every part
of it must be known, and Spark gets the tokens that were parsed: no comments, in which the two
parsers could differ. What is not understood here is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from millstream.errors import Location, closest, fault, listed
from millstream.sql.frontier import FRONTIER
from millstream.sql.parse import parse, too_deep, verify_reads
from millstream.sql.refusal import location_of
from millstream.sql.spark_functions import FUNCTIONS, TABLE_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlglot.tokenizer_core import Token

_NODES = """
Add Alias And Anonymous Any Between BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Boolean Bracket CTE
Case Cast Cluster Column ColumnDef Concat Cube DPipe DataType DataTypeParam Distinct Distribute Div
Dot EQ Escape Except Exists Extract Filter From GT GTE Group GroupingSets Having HexString ILike
Identifier If IgnoreNulls In IntDiv Intersect Interval IntervalSpan Is Join LT LTE Lambda Lateral
Like Limit Literal Mod Mul NEQ Neg Not Null NullSafeEQ NullSafeNEQ Offset Or Order Ordered Paren
Pivot PivotAlias Qualify RawString RegexpLike Rollup Select Sort Star StrPosition Sub Subquery
Substring Table TableAlias TableSample Trim TryCast Tuple Union Values Var Version Where Window
WindowSpec With WithinGroup
"""
_KNOWN = frozenset(_NODES.split())
_OF_TABLES = frozenset({"this", "alias", "version", "sample", "joins", "laterals", "pivots"})


def verified(text: str, tables: Collection[str]) -> str:
    """Return a query as Spark may run it: the same tokens, blanks for all else.

    Raises:
        SQL_SYNTAX: It cannot be read.
        SQL_NOT_READING: It is not one reading statement.
        SQL_NOT_ALLOWED: It has a part that could do more than read the tables.
        UNKNOWN_TABLE: It names a table that is not there.
    """
    if "${" in text:
        _refuse("a variable, ${…}", Location("query", text[: text.index("${")].count("\n") + 1, 1))
    try:
        statement = parse(text)
        ctes = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
        known = {name.lower() for name in tables} | ctes | {FRONTIER}
        for node in statement.walk():
            _verify(node, known, tables)
    except RecursionError as error:
        raise too_deep() from error
    return _tokens_alone(text, verify_reads(text))


def _verify(node: exp.Expr, known: Collection[str], tables: Collection[str]) -> None:
    kind = type(node).__name__
    if kind not in _KNOWN:
        _refuse(f"{node.key.upper()} here", location_of(node))
    if isinstance(node, exp.Anonymous):
        is_plain = not (isinstance(node.parent, exp.Dot) and node.arg_key == "expression")
        of_table = isinstance(node.parent, exp.Table | exp.Lateral)
        if not is_plain or node.name.lower() not in (TABLE_FUNCTIONS if of_table else FUNCTIONS):
            _refuse(f"function {node.name}", location_of(node))
    if isinstance(node, exp.Table):
        _verify_table(node, known, tables)


def _verify_table(table: exp.Table, known: Collection[str], tables: Collection[str]) -> None:
    extra = [key for key, value in table.args.items() if value and key not in _OF_TABLES]
    if isinstance(table.this, exp.Anonymous) and not extra:
        return
    name = ".".join(part.name for part in table.parts)
    if extra or not isinstance(table.this, exp.Identifier) or name.lower() not in known:
        raise fault(
            "UNKNOWN_TABLE",
            at=location_of(table),
            name=name,
            nearest=closest(name, tables),
            known=listed(tables),
        )


def _tokens_alone(text: str, tokens: Sequence[Token]) -> str:
    """Blank what is in no token, so that places in the text stay the same."""
    kept = [" "] * len(text)
    for token in tokens:
        kept[token.start : token.end + 1] = text[token.start : token.end + 1]
    return "".join(kept)


def _refuse(construct: str, at: Location | None) -> NoReturn:
    raise fault("SQL_NOT_ALLOWED", at=at, construct=construct)

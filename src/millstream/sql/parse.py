"""Reading Spark's SQL: one statement that reads, nothing else."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from millstream.errors import Location, fault

if TYPE_CHECKING:
    from millstream.errors import MillstreamError

_READING = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
_SPARKS = "write it in Spark's SQL, on one table or more"
_BEGINNINGS = ("(", "FROM", "SELECT", "VALUES", "WITH")
_SPECIAL = ("CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "TRY_CAST")
"""Functions whose arguments are not just a list."""


class _Dialect(Spark):
    """Spark's SQL, functions left as they are written; CAST is not TRY_CAST."""

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: Spark.Parser.FUNCTION_PARSERS[name] for name in _SPECIAL
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": Spark.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }
        STRICT_CAST = True


def parse(text: str) -> exp.Expr:
    """Read one reading statement.

    Raises:
        SQL_SYNTAX: It cannot be read.
        SQL_NOT_READING: It is something else.
    """
    tokens = verify_reads(text)
    try:
        [*statements] = filter(None, _Dialect().parser().parse(tokens, text))
    except ParseError as error:
        [first, *_] = error.errors
        cause = str(first["description"]).partition(" but got <")[0]
        at = Location("query", first["line"], first["col"])
        why = f"{cause}, near {first['highlight']!r}"
        raise fault("SQL_SYNTAX", at=at, cause=why, instead=_SPARKS) from error
    [statement] = statements
    if not isinstance(statement, _READING):
        raise fault("SQL_NOT_READING", got=statement.key.upper())
    return statement


def too_deep() -> MillstreamError:
    """Return the error for a query whose parts are nested too deeply for Python's stack."""
    instead = "nest fewer parts: give them names with WITH"
    cause = "it is nested too deeply"
    return fault("SQL_SYNTAX", at=Location("query", 1, 1), cause=cause, instead=instead)


def verify_reads(text: str) -> list[Token]:
    """Check that a text is one statement that reads, as far as its tokens show; return the tokens.

    Raises:
        SQL_SYNTAX: It is empty or not UTF-8, has `@` in it, or a string that does not end.
        SQL_NOT_READING: It is several statements, or one that writes.
    """
    _verify_utf8(text)
    try:
        tokens = _Dialect().tokenize(text)
    except SqlglotError as error:
        cause = str(error).splitlines()[0]
        raise fault("SQL_SYNTAX", cause=cause, instead=_SPARKS) from error
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise fault("SQL_SYNTAX", cause="it is empty", instead=_SPARKS)
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise fault("SQL_NOT_READING", got="several statements")
    for token in tokens:
        is_writing = token.token_type == TokenType.INSERT or token.text.upper() == "INSERT"
        if is_writing and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
            raise fault("SQL_NOT_READING", got="INSERT")
        if token.token_type == TokenType.PARAMETER and token.text == "@":
            raise fault(
                "SQL_SYNTAX",
                at=Location("query", token.line, token.col),
                cause="Spark's SQL has no @",
                instead="ask for a version of a table with orders VERSION AS OF 3, "
                "or with orders TIMESTAMP AS OF '2026-01-31 12:00:00'",
            )
    if tokens[0].text.upper() not in _BEGINNINGS:
        raise fault("SQL_NOT_READING", got=tokens[0].text.upper())
    return [_as_name(token, second) for token, second in zip_longest(tokens, tokens[2:])]


def _verify_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        column = error.start - text.rfind("\n", 0, error.start)
        raise fault(
            "SQL_SYNTAX",
            at=Location("query", line, column),
            cause="it is not UTF-8",
            instead="send the query as UTF-8",
        ) from error


def _as_name(token: Token, second: Token | None) -> Token:
    # A word of its own only in `WINDOW name AS (…)`: else a column, or the function.
    if token.token_type == TokenType.WINDOW and not (second and second.text.upper() == "AS"):
        token.token_type = TokenType.VAR
    return token

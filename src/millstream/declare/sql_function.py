"""A query as a function of DataFrames, and the names that it reads."""

from __future__ import annotations

import itertools
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import Location, fault
from millstream.model.sketch import named_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlglot import Token, exp
    from sqlglot.errors import SqlglotError

    from millstream.model.spark_types import DataFrame


_NAMING = threading.Lock()
"""A session has one frame by each name, and recomputed tables are answered in threads."""


_UNCLOSED = re.compile(r"(Missing .+) from \d+:(\d+)")


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A query as a function: DataFrames in, in the order of `reads`, DataFrame out."""

    query: str
    reads: tuple[str, ...]
    place: Callable[[int], Location]
    """Returns the location of a line of the query."""

    @staticmethod
    def of(query: str, *, dataset: str, place: Callable[[int], Location]) -> SqlFunction:
        """Make a function of a query.

        Raises:
            SQL_REFUSED: The text is not one query in Spark's dialect.
        """
        return SqlFunction(query, tuple(sql_inputs(query, dataset=dataset, place=place)), place)

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """Run the query on DataFrames."""
        spark = frames[0].sparkSession
        with _NAMING:
            for name, frame in zip(self.reads, frames, strict=True):
                frame.createOrReplaceTempView(name)
            for function in named_in(self.query):
                spark.sql(function)
            try:
                return spark.sql(self.query)
            finally:
                for name in self.reads:
                    spark.catalog.dropTempView(name)

    def place_of(self, offset: int) -> Location:
        """Return the location of a character of the query."""
        return self.place(self.query.count("\n", 0, offset) + 1)


def sql_inputs(query: str, *, dataset: str, place: Callable[[int], Location]) -> Mapping[str, int]:
    r"""List the datasets a query reads: its FROM names, without those it defines itself.

    Args:
        query: The text.
        dataset: What it is the query of.
        place: Returns the location of a line of it.

    Returns:
        The names, each with the line of the query that names it first.

    Raises:
        SQL_REFUSED: The text is not one query in Spark's dialect.

    >>> query = "WITH x AS (SELECT 1)\nSELECT * FROM a JOIN x"
    >>> sql_inputs(query, dataset="d", place=lambda line: Location("d.sql", line))
    {'a': 2}
    """
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        statements = [s for s in _parsed(query) if s is not None]
    except SqlglotError as error:
        why, line = _explained(error, query)
        raise fault("SQL_REFUSED", at=place(line), dataset=dataset, why=why) from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        got = f"{len(statements)} statements" if len(statements) != 1 else statements[0].key.upper()
        line = _line(statements[-1]) if statements else 1
        raise fault("SQL_REFUSED", at=place(line), dataset=dataset, why=f"got {got}")
    defined = {cte.alias for cte in statements[0].find_all(exp.CTE)}
    found: dict[str, int] = {}
    for table in statements[0].find_all(exp.Table):
        if table.name and not table.db and table.name not in defined:
            found.setdefault(table.name, _line(table))
    return found


def sql_tokens(query: str) -> list[Token]:
    """Cut a query into words, without its comments.

    Raises:
        SqlglotError: A quotation does not end.
    """
    from sqlglot import Dialect, TokenType

    tokens = Dialect.get_or_raise("spark").tokenize(query)
    for word, following in itertools.pairwise(tokens):
        # To sqlglot `GROUP BY window(at, '1 minute')` is the WINDOW clause, without its name.
        if word.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
            word.token_type = TokenType.VAR
    return tokens


def _parsed(query: str) -> Sequence[exp.Expr | None]:
    from sqlglot import Dialect

    return Dialect.get_or_raise("spark").parser().parse(sql_tokens(query), query)


def _line(node: exp.Expr) -> int:
    """Return the line of the first name in a part of a query."""
    return min((n.meta["line"] for n in node.walk() if "line" in n.meta), default=1)


def _explained(error: SqlglotError, query: str) -> tuple[str, int]:
    """Return why a text cannot be read, and at which of its lines."""
    for found in getattr(error, "errors", ()):
        cause = str(found["description"]).partition(" but got <")[0]
        return f"{cause}, near {found['highlight']!r}", found["line"] or 1
    cause = str(error.__cause__ or error)
    if unclosed := _UNCLOSED.fullmatch(cause):
        # sqlglot says at which line the text ends, and at which character the quotation began.
        return unclosed[1], query.count("\n", 0, int(unclosed[2])) + 1
    return cause.splitlines()[0], 1

"""Where the answer to a query goes: the terminal, a pipe or a file."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.cli.text import cell, counted, print_table
from millstream.errors import fault
from millstream.views.json_text import AnswerView, to_json

if TYPE_CHECKING:
    from millstream.lake.home import Home
    from millstream.sql.answer import Answer, Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What was asked for: a table, JSON or a file."""

    rows: int
    """How many are printed at most; a file may have any number."""
    json: bool = False
    csv: str | None = None
    parquet: str | None = None

    def verify(self, sql: str | None) -> None:
        """Make sure that at most one is asked for, and files for a statement alone.

        Raises:
            USAGE: It is not so.
        """
        formats = (self.json, self.csv is not None, self.parquet is not None)
        if sum(formats) > 1:
            cause = "it takes one of --json, --csv and --parquet"
        elif sql is None and any(formats):
            cause = "--json, --csv and --parquet need SQL"
        else:
            return
        raise fault("USAGE", command="millstream query", cause=cause)

    def answer(self, home: Home, engine: Engine, sql: str) -> None:
        """Answer a statement."""
        from millstream import sql as queries

        if self.csv is None and self.parquet is None:
            view = queries.run(home, engine, sql, self._view)
            print(to_json(view)) if self.json else show(view)
            return
        count = queries.run(home, engine, sql, self._write)
        if self.csv != "-":
            print(f"  {counted(count, 'row')} written to {self.csv or self.parquet}")

    def _view(self, answer: Answer) -> AnswerView:
        from millstream.sql.answer import read_rows

        return AnswerView(answer.columns, read_rows(answer, self.rows))

    def _write(self, answer: Answer) -> int:
        from millstream.views.answer_file import print_csv, write_csv, write_parquet

        if self.parquet is not None:
            return write_parquet(answer, self.parquet)
        if self.csv == "-":
            return print_csv(answer, sys.stdout)
        return write_csv(answer, self.csv or "")


def show(view: AnswerView) -> None:
    """Print an answer."""
    print_table(view.columns, [[cell(value) for value in row] for row in view.rows])
    print(f"\n  {counted(len(view.rows), 'row')}")

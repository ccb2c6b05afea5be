r"""The prompt of `millstream query`: statements until `;`, and \d, \d NAME, \q."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.cli.text import counted, with_more
from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from millstream.cli.answer import Output
    from millstream.cli.interrupt import Interrupts
    from millstream.lake.home import Home
    from millstream.sql.answer import Engine

_FIRST, _NEXT = "millstream> ", "        ... "
_HELP = r"  end a statement with ;   \d lists the tables, \d NAME the columns of one, \q leaves"
_WORDS = """
AND AS BETWEEN BY CASE COUNT CROSS DESC DESCRIBE DISTINCT ELSE END EXCEPT EXISTS FROM FULL GROUP
HAVING IN INNER INTERSECT IS JOIN LEFT LIKE LIMIT NATURAL NOT NULL OF ON OR ORDER OUTER RIGHT SELECT
SHOW TABLES THEN TIMESTAMP UNION USING VALUES VERSION WHEN WHERE WINDOW WITH
"""
_HISTORY_LINES = 1000


@dataclass(frozen=True, slots=True)
class Prompt:
    """Reads statements from a terminal, or from a pipe, and answers each."""

    home: Home
    engine: Engine
    output: Output
    interrupts: Interrupts
    is_terminal: bool = field(default_factory=sys.stdin.isatty)

    def run(self) -> None:
        """Answer statements until the input ends; Ctrl-C ends a statement, SIGTERM the prompt.

        Raises:
            MillstreamError: A statement from a pipe cannot be answered.
        """
        history = _History(self.home) if self.is_terminal else None
        if self.is_terminal:
            self.interrupts.end_input()
            print(f"  {counted(len(self.home.tables), 'table')} in {self.home.path}\n{_HELP}")
        while True:
            try:
                statement = self._read()
                if statement is None or statement == "\\q":
                    return
                if history:
                    history.write()
                self._answer(_as_sql(statement))
            except KeyboardInterrupt:
                if not self.interrupts.forget_ctrl_c():
                    raise
                print()

    def _read(self) -> str | None:
        """Read a statement, of one line or several; None at the end of the input."""
        lines: list[str] = []
        while True:
            try:
                line = input((_NEXT if lines else _FIRST) if self.is_terminal else "")
            except EOFError:
                return "\n".join(lines) if "".join(lines).strip() and not self.is_terminal else None
            if not lines and (line.startswith("\\") or not line.strip()):
                if line.strip():
                    return line.strip()
                continue
            lines.append(line)
            if line.rstrip().endswith(";"):
                return "\n".join(lines)

    def _answer(self, sql: str | None) -> None:
        if sql is None:
            print(_HELP)
            return
        try:
            self.output.answer(self.home, self.engine, sql)
        except MillstreamError as error:
            if not self.is_terminal:
                raise
            print(with_more(error), file=sys.stderr)


def _as_sql(statement: str) -> str | None:
    r"""Return what a command with a backslash stands for; None if it is none.

    >>> _as_sql(r"\d"), _as_sql(r"\d orders"), _as_sql(r"\help"), _as_sql("SELECT 1;")
    ('SHOW TABLES', 'DESCRIBE `orders`', None, 'SELECT 1;')
    """
    if not statement.startswith("\\"):
        return statement
    command, _, name = statement.rstrip(" ;").partition(" ")
    if command != "\\d":
        return None
    return f"DESCRIBE `{name.strip(' `')}`" if name else "SHOW TABLES"


class _History:
    """Editing, completion and history of the terminal, if Python was built with readline."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._names: list[str] = []
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self._file = Path(state) / "millstream" / "query_history"
        with suppress(ImportError):
            import readline

            is_libedit = "libedit" in (readline.__doc__ or "")
            readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
            readline.set_completer(self.complete)
            readline.set_history_length(_HISTORY_LINES)
            with suppress(OSError):
                readline.read_history_file(self._file)

    def write(self) -> None:
        """Write what was typed; a history that cannot be written is not kept."""
        with suppress(ImportError, OSError):
            import readline

            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            readline.write_history_file(self._file)
            self._file.chmod(0o600)

    def complete(self, text: str, state: int) -> str | None:
        """Complete the name of a table or a column, or a word of SQL."""
        if not self._names:
            self._names = [*_names(self._home), *_WORDS.split()]
        found = [name for name in self._names if name.lower().startswith(text.lower())]
        return found[state] if state < len(found) else None


def _names(home: Home) -> list[str]:
    """Return the names of all tables and of their columns, each once."""
    from millstream.sql.catalogue import column_names

    names = dict.fromkeys(home.tables)
    for table in home.tables:
        with suppress(Exception):  # A table that cannot be read has no names to offer.
            names |= dict.fromkeys(column_names(home, table))
    return list(names)

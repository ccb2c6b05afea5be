"""The answer to a query, whichever engine computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from millstream.sql.limits import over_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

T = TypeVar("T")


class Answer(Protocol):
    """Columns and rows; it is read once, either as rows or as Arrow."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    def batches(self, most: int | None = None) -> Iterator[list[tuple[Any, ...]]]:
        """Read the rows, some at a time; no more than `most` are needed."""

    def record_batches(self) -> pa.RecordBatchReader:
        """Read the rows as Arrow."""


@dataclass(frozen=True, slots=True)
class HeldAnswer:
    """An answer that is known already."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def batches(self, most: int | None = None) -> Iterator[list[tuple[Any, ...]]]:  # noqa: ARG002
        """Read the rows, all at once."""
        yield self.rows

    def record_batches(self) -> pa.RecordBatchReader:
        """Read the rows as Arrow."""
        import pyarrow as pa

        columns = zip(self.columns, zip(*self.rows, strict=True), strict=True)
        return pa.table({name: list(values) for name, values in columns}).to_reader()


class Engine(Protocol):
    """Answers queries."""

    def run(self, text: str, take: Callable[[Answer], T]) -> T:
        """Run a query; return what `take` makes of its answer."""


def read_rows(answer: Answer, most: int) -> list[tuple[Any, ...]]:
    """Return all rows of an answer.

    Raises:
        SQL_OVER_LIMIT: There are more than `most`.
    """
    rows: list[tuple[Any, ...]] = []
    for batch in answer.batches(most + 1):
        rows += batch
        if len(rows) > most:
            raise over_limit(f"{most:,} rows".replace(",", " "), "--max-rows")
    return rows

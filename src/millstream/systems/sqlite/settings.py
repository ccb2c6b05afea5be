"""Tables of SQLite: the store that needs no server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.serve.fence import Place
from millstream.serve.option import as_names, keyless_update, unusable_options
from millstream.systems import relational as sql

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from millstream.errors import Location, MillstreamError
    from millstream.model.trigger import Trigger
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Shape
    from millstream.serve.store import Store, StoreReader


@dataclass(frozen=True, slots=True)
class SQLite:
    """A table in a file, made if it is not there; readers see whole batches, each once."""

    path: str
    table: str = ""
    """Named as the dataset, unless said otherwise."""
    key: Sequence[str] = ()
    newest_by: str | None = None
    """Of two rows with one key, the one with the greater value here stands."""
    delete_when: str | None = None
    """A condition in SQL: a row that meets it deletes the one with its key."""
    evolve: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", as_names(self.key))

    def guarantee(self, trigger: Trigger) -> str:  # noqa: ARG002
        """Each row once."""
        return "exactly once"

    def faults(self, serve: str, mode: str, at: Location) -> Iterator[MillstreamError]:
        """An update without a key, and options that have no effect together."""
        yield from keyless_update("SQLite", self, serve, mode, at)
        yield from unusable_options("SQLite", self, serve, mode, at)

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:
        """Nothing to reach: the file is made when it is opened."""

    def open(self, shape: Shape, driver: Driver) -> Store:
        """Open the file; make the table or hold the answer to it."""
        from millstream.systems.sqlite.sink import SQLiteStore

        return SQLiteStore(self, shape, driver)

    def reader(self, dataset: str) -> StoreReader:
        """Open the file for look-ups."""
        from millstream.systems.sqlite.sink import SQLiteReader

        return SQLiteReader(self, dataset)

    def target(self, dataset: str) -> str:
        """The name of the table."""
        return self.table or dataset

    def place(self, dataset: str) -> Place:
        """Name the table, as errors do."""
        target = self.target(dataset)
        forget = (
            f"`DROP TABLE {sql.quoted(target)}; "
            f"DELETE FROM {sql.FENCE} WHERE target = '{target}'` in {self.path!r}"
        )
        return Place(f"SQLite table {target!r} in {self.path!r}", forget)

"""Tables of Postgres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.serve.fence import Place
from millstream.serve.option import as_names, keyless_update, unusable_options
from millstream.settings.secret import revealed
from millstream.systems import relational as sql
from millstream.systems.address import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from millstream.errors import Location, MillstreamError
    from millstream.model.trigger import Trigger
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Shape
    from millstream.serve.store import Store, StoreReader

_LONGEST_NAME = 63
_OWN_COLUMNS = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")


@dataclass(frozen=True, slots=True)
class Postgres:
    """A table, made if it is not there; readers see whole batches, each once."""

    dsn: str
    """An address such as `postgresql://user:password@host/database`; never printed in full."""
    table: str = ""
    """Named as the dataset, unless said otherwise; `schema.table` in a schema of its own."""
    key: Sequence[str] = ()
    newest_by: str | None = None
    """Of two rows with one key, the one with the greater value here stands."""
    delete_when: str | None = None
    """A condition in SQL: a row that meets it deletes the one with its key."""
    evolve: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", as_names(self.key))
        object.__setattr__(self, "dsn", guarded(self.dsn))

    def guarantee(self, trigger: Trigger) -> str:  # noqa: ARG002
        """Each row once."""
        return "exactly once"

    def faults(self, serve: str, mode: str, at: Location) -> Iterator[MillstreamError]:
        """An address that cannot be read, an update without a key, and options without effect."""
        if why := address_fault(self.dsn):
            use = "write it as postgresql://user:password@host/database"
            yield fault("STORE_MODE", at=at, serve=serve, store="Postgres", why=why, use=use)
        yield from keyless_update("Postgres", self, serve, mode, at)
        yield from unusable_options("Postgres", self, serve, mode, at)

    def name_fault(self, column: str) -> str | None:
        """Find a name that Postgres would cut off, or has for columns of its own."""
        if (size := len(column.encode())) > _LONGEST_NAME:
            return f"Postgres takes names of at most {_LONGEST_NAME} bytes, this one has {size}"
        return "Postgres has that column itself" if column in _OWN_COLUMNS else None

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:  # noqa: ARG002
        """Log in once."""
        from millstream.systems.postgres.session import connect

        connect(self, self.place(serve)).close()

    def open(self, shape: Shape, driver: Driver) -> Store:
        """Log in; create the table or check the answer against it."""
        from millstream.systems.postgres.sink import PostgresStore

        return PostgresStore(self, shape, driver)

    def reader(self, dataset: str) -> StoreReader:
        """Log in for look-ups."""
        from millstream.systems.postgres.sink import PostgresReader

        return PostgresReader(self, dataset)

    def target(self, dataset: str) -> str:
        """The name of the table."""
        return self.table or dataset

    def place(self, dataset: str) -> Place:
        """Name the table, as errors do."""
        target = self.target(dataset)
        fences = sql.beside(target, sql.FENCE)
        return Place(
            f"Postgres table {target!r} at {self.dsn}",
            f"`DROP TABLE {sql.qualified(target)}; DELETE FROM {fences} WHERE target = '{target}'`",
        )


def address_fault(dsn: str) -> str:
    """Return what is wrong with an address, without asking its server.

    Nothing of the address is repeated: in one that cannot be read, the password may be anywhere.
    """
    try:
        import psycopg
    except ImportError:
        return ""
    try:
        psycopg.conninfo.conninfo_to_dict(revealed(dsn))
    except psycopg.ProgrammingError:
        return "its address cannot be read, or has an option that does not exist"
    return ""

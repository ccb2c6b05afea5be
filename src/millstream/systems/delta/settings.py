"""Delta tables outside the home, as stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.serve.fence import Place
from millstream.serve.option import as_names, keyless_update, unusable_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from millstream.errors import Location, MillstreamError
    from millstream.model.trigger import Trigger
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Shape
    from millstream.serve.store import Store


@dataclass(frozen=True, slots=True)
class DeltaPath:
    """A Delta table in a folder, made if it is not there; a batch is one commit."""

    path: str
    key: Sequence[str] = ()
    delete_when: str | None = None
    """A condition in SQL: a row that meets it deletes the one with its key."""
    evolve: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", as_names(self.key))

    @property
    def newest_by(self) -> None:
        """A merge takes the row that comes last."""
        return

    def guarantee(self, trigger: Trigger) -> str:  # noqa: ARG002
        """Each row once."""
        return "exactly once"

    def faults(self, serve: str, mode: str, at: Location) -> Iterator[MillstreamError]:
        """An update without a key, and options that have no effect together."""
        yield from keyless_update("DeltaPath", self, serve, mode, at)
        yield from unusable_options("DeltaPath", self, serve, mode, at)

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:
        """Nothing to reach: the table is made when it is opened."""

    def open(self, shape: Shape, driver: Driver) -> Store:
        """Open the table; make it or hold the answer to it."""
        from millstream.systems.delta.sink import DeltaStore

        return DeltaStore(self, shape, driver)

    def place(self, dataset: str) -> Place:  # noqa: ARG002
        """Name the table, as errors do."""
        return Place(f"Delta table '{self.path}'", f"`rm -r {self.path}`")

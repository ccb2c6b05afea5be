"""Folders of files: one for each batch, there as a whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from millstream.errors import fault
from millstream.serve.fence import Place
from millstream.systems.record_source import format_fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from millstream.errors import Location, MillstreamError
    from millstream.model.trigger import Trigger
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Shape
    from millstream.serve.store import Store

FORMATS = ("parquet", "json", "csv")
OWN = "_millstream"
"""The folder in a folder of files in which fences and unfinished files are; readers skip it."""


@dataclass(frozen=True, slots=True)
class FileSink:
    """A folder that gets one file for each batch with rows; no file is ever changed."""

    path: str
    format: Literal["parquet", "json", "csv"] = "parquet"
    """JSON has an object on each line; CSV begins with the names of the columns."""

    @property
    def key(self) -> tuple[str, ...]:
        """Rows of files have no key."""
        return ()

    @property
    def newest_by(self) -> None:
        """Rows are not chosen from."""
        return

    @property
    def delete_when(self) -> None:
        """Rows are not deleted."""
        return

    @property
    def evolve(self) -> bool:
        """Each file has the columns of its batch."""
        return True

    def guarantee(self, trigger: Trigger) -> str:  # noqa: ARG002
        """Each row once."""
        return "exactly once"

    def faults(self, serve: str, mode: str, at: Location) -> Iterator[MillstreamError]:
        """A format that is none of ours, or rows that change."""
        if self.format not in FORMATS:
            yield format_fault(f"serve {serve!r}", self.format, FORMATS, at)
        if mode != "append":
            why = f"mode={mode!r} changes rows, and a file that is written stays as it is"
            use = "serve it to ms.DeltaPath, whose rows can change"
            yield fault("STORE_MODE", at=at, serve=serve, store="FileSink", why=why, use=use)

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:
        """Nothing to reach: the folder is made when it is opened."""

    def open(self, shape: Shape, driver: Driver) -> Store:
        """Make the folder."""
        from millstream.systems.files.sink import FileStore

        return FileStore(self, shape, driver)

    def place(self, dataset: str) -> Place:
        """Name the files, as errors do."""
        files, own = Path(self.path) / f"{dataset}-*", Path(self.path) / OWN / f"{dataset}.*"
        return Place(f"files '{files}'", f"`rm {files} {own}`")

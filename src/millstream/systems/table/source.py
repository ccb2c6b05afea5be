"""A table of another Millstream app, read from its home as rows are committed there."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

from millstream.errors import MillstreamError, SchemaError, closest, fault, listed
from millstream.lake.durable import write_durably
from millstream.lake.frontier import NOTHING_YET
from millstream.lake.home import QUARANTINE, Home
from millstream.lake.log import commit_checksum, facts_of, versions
from millstream.model.codec import Codec
from millstream.model.connector import Followed
from millstream.model.schema import RESERVED_PREFIX, Schema
from millstream.settings.secret import revealed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.errors import Location

_ALL_FILES = 2**31 - 1
_VERSION, _COMMIT = "version", "commit"


class Deployed(Protocol):
    """Whatever has a home: an App."""

    def home(self) -> Home:
        """Where it is deployed."""
        ...


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of an append table of another Millstream app, or the right rows of its source.

    Columns and event time are those of the table. Its frontier is respected: a row that the other
    app may still bring is never late here.
    """

    home: str | PathLike[str] | Deployed
    """The folder the other app is deployed in, or the app itself."""
    dataset: str
    columns: str | None = None
    """The columns that the table must have, as a schema; not checked if None."""

    @property
    def schema(self) -> Schema | str:
        """What the table says."""
        try:
            return self._columns()
        except MillstreamError as error:
            if isinstance(error, SchemaError):
                raise
            return "value STRING"

    @property
    def codec(self) -> Codec:
        """Rows are typed already."""
        return Codec("rows")

    def followed(self) -> Followed | None:
        """Return what is known of the table now; None if it cannot be read."""
        try:
            return self.followed_to(versions(self._path).stop - 1)
        except MillstreamError:
            return None

    def followed_to(self, version: int) -> Followed:
        """Return what was known of the table at a version."""
        if version < 0:
            # The snapshot that it begins with is not read as a whole yet.
            return Followed({}, NOTHING_YET, facts_of(self._path).event_time, None)
        facts = facts_of(self._path, version=version)
        commit = commit_checksum(self._path, version)
        position = {_VERSION: version} | ({} if commit is None else {_COMMIT: commit})
        delay = None if facts.delay is None else timedelta(microseconds=facts.delay)
        return Followed(position, facts.frontier, facts.event_time, delay)

    def faults(self, source: str, at: Location) -> Iterator[MillstreamError]:
        """A home or a table that is not there, rows that change, columns that differ."""
        try:
            self._refuse_unreadable(source, at)
        except MillstreamError as error:
            yield error.located(at)

    def reach(self, spark: SparkSession, source: str, at: Location) -> None:  # noqa: ARG002
        """Look at the table once more: its app may have changed it since.

        Raises:
            MillstreamError: It cannot be read.
        """
        self._refuse_unreadable(source, at)

    def register(self, source: str, home: Path, at: Location) -> None:
        """Have the other app keep what this one has not read yet.

        Raises:
            READER_NOT_REGISTERED: Its home cannot be written.
        """
        entry = {"home": str(home), "source": source, "table": self.dataset}
        mark = hashlib.sha256(json.dumps(entry).encode()).hexdigest()[:16]
        file = self._home.readers / f"{mark}.json"
        if file.exists():
            return
        try:
            file.parent.mkdir(exist_ok=True)
            write_durably(file, json.dumps(entry) + "\n", by=str(os.getpid()))
        except OSError as error:
            raise fault(
                "READER_NOT_REGISTERED",
                at=at,
                source=source,
                table=self.dataset,
                folder=str(file.parent),
                why=error.strerror or str(error),
            ) from error

    def check_position(self, position: Mapping[str, int], source: str, at: Location) -> None:
        """Check that the table is still the one that was read to a position.

        Raises:
            HISTORY_GONE: It was replaced or restored, or its log no longer goes back so far.
        """
        if not position:
            return
        version, there = position[_VERSION], versions(self._path)
        now = commit_checksum(self._path, version)
        why = None
        if version >= there.stop:
            why = f"it has no version after {there.stop - 1} now"
        elif now is None and version + 1 < there.start:
            why = f"its log begins at version {there.start} now"
        elif now is not None and now != position.get(_COMMIT, now):
            why = f"its version {version} is another one now"
        if why:
            raise fault(
                "HISTORY_GONE",
                at=at,
                source=source,
                table=self.dataset,
                home=self._home_text,
                version=version,
                why=why,
            )

    def read(self, spark: SparkSession, place: Path) -> DataFrame:  # noqa: ARG002
        """Open the table as a stream of whole versions, from its first on."""
        return self.read_bounded(spark, _ALL_FILES)

    @property
    def folder(self) -> Path:
        """Where the table is."""
        return self._path

    def read_bounded(self, spark: SparkSession, files: int) -> DataFrame:
        """Open the table as `read` does; its first batch reads so many files.

        They must be those of whole batches: of one read in parts, the greatest event time would
        run ahead of its other rows.
        """
        from pyspark.sql import functions as F

        from millstream.operators.columns import quoted

        reader = spark.readStream.format("delta").option("maxFilesPerTrigger", files)
        if versions(self._path).start == 0:
            reader = reader.option("startingVersion", 0)
        rows = reader.load(str(self._path))
        if self._home.is_landing(self.dataset):
            rows = rows.where("_verdict = 'ok'")
        origin, nowhere = F.lit(str(self._path)), F.lit(None).cast("long")
        names = map(quoted, self._columns().names)
        return rows.select(*names, origin.alias("_origin"), nowhere.alias("_position"))

    @property
    def _home(self) -> Home:
        if isinstance(self.home, str | PathLike):
            return Home.at(revealed(os.fspath(self.home)))
        return self.home.home()

    @property
    def _home_text(self) -> str:
        if isinstance(self.home, str | PathLike):
            return os.fspath(self.home)
        return str(self._home.path)

    @property
    def _path(self) -> Path:
        return self._home.existing(self.dataset)

    def _columns(self) -> Schema:
        from deltalake import DeltaTable

        schema = json.loads(DeltaTable(str(self._path)).schema().to_json())
        if self._home.is_landing(self.dataset):
            kept = [f for f in schema["fields"] if not f["name"].startswith(RESERVED_PREFIX)]
            schema = {**schema, "fields": kept}
        return Schema.parse(_SparkSchema(schema))

    def _refuse_unreadable(self, source: str, at: Location) -> None:
        home, place, name = self._home, self._home_text, self.dataset
        if not home.is_deployed:
            raise fault("SOURCE_HOME", at=at, source=source, home=place)
        home.verify()
        if name not in home.tables:
            known = [table for table in home.tables if not table.endswith(QUARANTINE)]
            raise fault(
                "SOURCE_TABLE",
                at=at,
                source=source,
                table=name,
                home=place,
                nearest=closest(name, known),
                known=listed(known),
            )
        mode = facts_of(home.table(name)).mode
        if mode in ("update", "complete"):
            others = [t for t in home.tables if facts_of(home.table(t)).mode == "append"]
            raise fault(
                "TABLE_CHANGES",
                at=at,
                source=source,
                table=name,
                home=place,
                mode=mode,
                others=listed(others),
            )
        wanted, got = self.columns and Schema.parse(self.columns), self._columns()
        if wanted and wanted.with_nulls() != got.with_nulls():
            raise fault(
                "COLUMNS_DIFFER",
                at=at,
                source=source,
                wanted=wanted.to_ddl(),
                table=name,
                home=place,
                got=got.to_ddl(),
            )


@dataclass(frozen=True, slots=True)
class _SparkSchema:
    """A schema in Spark's JSON."""

    fields: dict[str, Any]

    def jsonValue(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self.fields

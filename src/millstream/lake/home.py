"""The folder of one deployed application: where its tables, checkpoints and logs are."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.errors import closest, fault, listed
from millstream.lake.durable import write_durably
from millstream.lake.log import is_table
from millstream.settings import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT = 1
"""Raised when a home written by this version cannot be read by earlier ones."""

QUARANTINE = "__quarantine"

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
"""What begins like `s3://`, which a Path writes as `s3:/`."""

_RESERVED = re.compile(r"%[0-9A-Fa-f]{2}|[][{}*?\\^|\x00-\x1f]")
"""What Spark or Delta would read as something else than a part of a path."""


@dataclass(frozen=True, slots=True)
class Home:
    """A home folder; its layout is known here and nowhere else."""

    path: Path

    @staticmethod
    def at(path: str | Path) -> Home:
        """Name a home by its path.

        Raises:
            HOME_UNUSABLE: The path is not one of this machine's file system, or has
                characters that Delta tables cannot have in theirs.
        """
        if _ADDRESS.match(str(path)):
            raise fault(
                "HOME_UNUSABLE", home=str(path), why="it is not a path of the local file system"
            )
        home = Home(Path(path).expanduser().absolute())
        if found := _RESERVED.search(str(home.path)):
            why = f"Delta tables cannot have {found[0]!r} in their path"
            raise fault("HOME_UNUSABLE", home=str(home.path), why=why)
        return home

    def table(self, name: str) -> Path:
        """Where the Delta table of a dataset is."""
        return self.tables_folder / name

    def quarantine(self, name: str) -> Path:
        """Where the rows that a table rejected are."""
        return self.table(name + QUARANTINE)

    def checkpoint(self, query: str) -> Path:
        """Where Spark keeps the progress of a query."""
        return self.path / "checkpoints" / query

    def staging(self, query: str) -> Path:
        """Where Spark writes the files of a batch before they are committed."""
        return self.path / "staging" / query

    def changes(self, query: str) -> Path:
        """Where the log of an answer that is made from changing rows is."""
        return self.path / "changes" / query

    def served(self, query: str) -> Path:
        """Where the facts of the stores of an answer are recorded."""
        return self.path / "served" / f"{query}.json"

    def aside(self, query: str) -> Path:
        """Where rows on which stateful functions raised are, before their batch is committed."""
        return self.staging(query) / "raised"

    def states(self, query: str) -> Path:
        """Where the state that a query keeps for each key is described."""
        return self.path / "states" / f"{query}.json"

    def program(self, stream: str) -> Path:
        """Where a functional stream keeps its batches and its state."""
        return self.path / "programs" / stream

    def connector(self, source: str) -> Path:
        """Where the connector of a source keeps what it needs."""
        return self.path / "sources" / source

    def sinks(self, serve: str) -> Path:
        """Where sinks keep what they cannot keep beside their rows."""
        return self.path / "sinks" / serve

    @property
    def alerts(self) -> Path:
        """Where the deliveries of alerts are recorded."""
        return self.path / "alerts"

    def references(self, query: str) -> Path:
        """Where the reference data that a query reads are, and their version."""
        return self.path / "references" / query

    @property
    def readers_of_references(self) -> tuple[str, ...]:
        """Names of the queries that have reference data."""
        folder = self.references("")
        return tuple(sorted(f.name for f in folder.iterdir())) if folder.exists() else ()

    @property
    def models(self) -> Path:
        """Where it is recorded to which versions models were rolled back."""
        return self.path / "models"

    @property
    def maintenance(self) -> Path:
        """Where it is recorded what maintenance did, and where it writes files."""
        return self.path / "maintenance"

    @property
    def readers(self) -> Path:
        """Where other apps say that they read tables of this one."""
        return self.path / "readers"

    @property
    def troubles(self) -> Path:
        """Where the queries that failed in the last run are recorded."""
        return self.path / "troubles.json"

    @property
    def history(self) -> Path:
        """Where batches, events and runs are recorded."""
        return self.path / "observe" / "history.db"

    @property
    def logs(self) -> Path:
        """Where Spark's own log goes."""
        return self.path / "logs"

    @property
    def lease(self) -> Path:
        """Where drivers leave their epoch."""
        return self.path / "lease"

    @property
    def tables_folder(self) -> Path:
        """Where all Delta tables are."""
        return self.path / "tables"

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of all Delta tables."""
        folder = self.tables_folder
        found = folder.iterdir() if folder.exists() else ()
        return tuple(sorted(t.name for t in found if is_table(t)))

    @property
    def is_deployed(self) -> bool:
        """Whether an app has ever been deployed here."""
        return self._manifest.exists()

    def is_landing(self, name: str) -> bool:
        """Whether a table holds the rows of a source, with their verdicts."""
        return name in self.read_manifest().get("sources", ())

    def existing(self, name: str) -> Path:
        """Where an existing table is.

        Raises:
            UNKNOWN_TABLE: There is none of this name.
        """
        if name not in self.tables:
            raise fault(
                "UNKNOWN_TABLE",
                name=name,
                nearest=closest(name, self.tables),
                known=listed(self.tables),
            )
        return self.table(name)

    def is_served(self, name: str) -> bool:
        """Whether a query writes to a sink, not to a table."""
        return name in self.read_manifest().get("serves", ())

    def make(self) -> None:
        """Make the folder, for this user alone; one that exists keeps its permissions."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)

    def prepare(self, app: str, *, sources: Sequence[str], serves: Sequence[str] = ()) -> None:
        """Make the folders, or make sure that the home is this app's and of a known format.

        Raises:
            HOME_UNUSABLE: The folder cannot be made or written.
            HOME_NEWER: A newer Millstream wrote it.
            HOME_OTHER_APP: Another app owns it.
        """
        try:
            self.make()
            for folder in (self.logs, self.lease, self.path / "tables"):
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise fault(
                "HOME_UNUSABLE", home=str(self.path), why=error.strerror or str(error)
            ) from error
        if not os.access(self.path, os.W_OK):
            raise fault("HOME_UNUSABLE", home=str(self.path), why="it cannot be written")
        self.verify(app)
        kinds = {"sources": sources, "serves": serves}
        known = {kind: self.read_manifest().get(kind, ()) for kind in kinds}
        of_kinds = {kind: sorted({*known[kind], *names}) for kind, names in kinds.items()}
        self.write_manifest({"app": app, **of_kinds})

    def verify(self, app: str | None = None) -> None:
        """Make sure that the home is of a known format and, if given, this app's."""
        manifest = self.read_manifest()
        if manifest["format"] > FORMAT:
            raise fault(
                "HOME_NEWER",
                home=str(self.path),
                layout=manifest["format"],
                written_by=manifest["written_by"],
                known=FORMAT,
            )
        if app is not None and manifest["app"] not in (app, ""):
            raise fault("HOME_OTHER_APP", home=str(self.path), owner=manifest["app"], app=app)

    def verify_in_use(self, app: str | None = None) -> None:
        """Make sure that something has run here, and that it can be read.

        Raises:
            HOME_EMPTY: Nothing has.
        """
        self.verify(app)
        if not self.tables and not self.read_manifest().get("serves"):
            raise fault("HOME_EMPTY", home=str(self.path))

    def read_manifest(self) -> dict[str, Any]:
        """Read what is deployed here.

        Raises:
            HOME_DAMAGED: The manifest is not as it was written.
        """
        try:
            manifest = json.loads(self._manifest.read_text())
            int(manifest["format"]), str(manifest["app"]), str(manifest["written_by"])
        except (ValueError, KeyError, TypeError) as error:
            raise fault(
                "HOME_DAMAGED", file=str(self._manifest), why=f"{type(error).__name__}: {error}"
            ) from error
        except FileNotFoundError:
            return {"format": FORMAT, "app": "", "written_by": __version__}
        return dict(manifest)

    def write_manifest(self, facts: dict[str, Any]) -> None:
        """Write what is deployed here, in one step."""
        text = json.dumps({"format": FORMAT, "written_by": __version__, **facts}, indent=2)
        write_durably(self._manifest, text + "\n")

    @property
    def _manifest(self) -> Path:
        return self.path / "manifest"

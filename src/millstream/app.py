"""The front door: an application to declare, run, read and stop."""

from __future__ import annotations

import threading
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from millstream.bind import bind
from millstream.bind.declared import DeclaredApp
from millstream.bind.kind import destination_kinds, kinds, store_kinds
from millstream.declare.declarations import Declarations
from millstream.declare.function import location_of_caller
from millstream.declare.notebook import execution
from millstream.declare.register import Declaration
from millstream.declare.sql_file import Kinds, files_of, read_file
from millstream.errors import (
    Location,
    MillstreamError,
    fault,
    raise_faults,
    relative,
)
from millstream.model.graph import KEEP_VERSIONS, Graph
from millstream.model.query_options import QueryOptions
from millstream.serve.lookup import Lookups
from millstream.settings import Setting, resolve_home, resolve_master
from millstream.settings.profile import read_profile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from millstream.bind import BoundApp
    from millstream.lake.home import Home
    from millstream.model.destination import Destination
    from millstream.run.application import ApplicationRun, RunOptions
    from millstream.settings.profile import Profile
    from millstream.views.preview import Preview


class App(Declarations):
    """A continuous application: sources, views and tables, declared by plain functions and SQL.

    The decorators return the function unchanged, so that a test may call it with any DataFrame.
    """

    def __init__(  # noqa: PLR0913 - an app has the settings it has
        self,
        name: str,
        *,
        home: str | Path | None = None,
        master: str | None = None,
        trigger: str | None = None,
        batch: str | None = None,
        notify: Destination | Sequence[Destination] = (),
        keep_versions: str | None = None,
    ) -> None:
        super().__init__()
        self.name, self._options = name, QueryOptions(trigger=trigger, batch=batch)
        self._notify = tuple(notify) if isinstance(notify, list | tuple) else (notify,)
        self.at = location_of_caller()
        in_code = f"code ({self.at})"
        self._home = Setting(str(home), in_code) if home else None
        self._master = Setting(master, in_code) if master else None
        self._keep_versions = Setting(keep_versions, in_code) if keep_versions else None
        self._folder = Path(self.at.file).absolute().parent
        self._profile: Profile | None = None
        self._lookups = Lookups()
        self._running: ApplicationRun | None = None
        self._deployed: Home | None = None
        self._thread: threading.Thread | None = None
        self._died_of: Exception | None = None
        self._for_next_start: list[str] = []

    def choose(self, profile: str | None, *, beside: Path | None = None) -> None:
        """Choose a profile of the millstream.toml that belongs to a folder, else to the app's."""
        self._folder = beside or self._folder
        self._profile = read_profile(self._folder, profile)

    @property
    def profile(self) -> Profile:
        """The profile that was chosen, else the one of `MILLSTREAM_PROFILE`, else `default`."""
        if self._profile is None:
            self.choose(None)
        assert self._profile is not None
        return self._profile

    @property
    def bound(self) -> BoundApp:
        """What is declared so far, as the profile would have it."""
        return bind(self._register.datasets, self.profile)

    def sql_files(self, folder: str | Path) -> None:
        """Declare the datasets of a folder of SQL files, each by its header and its query.

        A relative folder is looked for beside the file that calls this.
        """
        at = location_of_caller()
        beside = Path(at.file).parent if Path(at.file).is_file() else Path()
        self.declare_folder(beside / folder, at)

    @property
    def graph(self) -> Graph:
        """What is declared so far; its sources come from where the profile says."""
        return self._declared.graph

    @property
    def _declared(self) -> DeclaredApp:
        bound = self.bound
        graph = Graph(
            self.name,
            bound.declared,
            replace(self._options, keep_versions=self._kept_versions.value),
            reactions=tuple(self._reactions.values()),
            notify=self._notify,
            at=self.at,
        )
        return DeclaredApp(graph, self._register, bound.faults)

    @property
    def faults(self) -> tuple[MillstreamError, ...]:
        """Everything that is wrong with the declarations; found without Spark."""
        return self._declared.faults(places=True)

    def run(self, **options: Unpack[RunOptions]) -> None:
        """Run until it is stopped, or with `once` until nothing is left.

        Raises:
            MillstreamError: The app is wrong, or a query stopped for good.
        """
        self._running = running = self.open(options)
        self._thread = None
        try:
            running.serve()
        finally:
            self._running = None
        running.raise_if_stopped_for_good()

    def start(self, **options: Unpack[RunOptions]) -> None:
        """Run in the background, until `stop`."""
        self._running = running = self.open(options)
        self._died_of = None
        self._thread = threading.Thread(target=self._serve, args=(running,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the running batches finish, then stop.

        Raises:
            MillstreamError: A query, or all of it, had stopped for good.
        """
        running, thread = self._running, self._thread
        if running is None:
            return
        running.ask_to_stop()
        if thread is not None:
            thread.join()
            self._running = self._thread = None
            if self._died_of is not None:
                raise self._died_of
            running.raise_if_stopped_for_good()

    def read(self, name: str, *, version: int | None = None) -> DataFrame:
        """Read a table, a landed source or a quarantine, as it is now or was at a version.

        Raises:
            UNKNOWN_TABLE: There is no such table.
            UNKNOWN_VERSION: The table has no such version.
        """
        from millstream.lake.travel import read_table

        home = self.home()
        home.existing(name)
        return read_table(self._connect()(), home, name, version=version)

    def get(self, name: str, /, **key: Any) -> dict[str, Any] | None:
        """Look up one row of a served answer in its store, by its key; None if it has none.

        Of several stores, the first is asked; connections stay open for the next look-ups, and
        threads may look up at once.

        Raises:
            UNKNOWN_DATASET: The app declares no such dataset.
            NOT_SERVED: The answer is in no store.
            LOOKUP_REFUSED: The columns are not those of the key.
            LOOKUP_VALUE: A value can be none of its column's.
            StoreUnreachableError: The store does not answer, not even when it is connected again.
        """
        return self._lookups.of(self.graph, name).get(key)

    def preview(
        self, name: str, rows: int = 20, *, sample: int = 1000, fresh: bool = False
    ) -> Preview:
        """Look at the first rows of a dataset, without running the app or writing anything.

        Its sources are what has landed of them or, if that is nothing, their first records, which
        are judged now; the rest is computed from those as a batch.

        Args:
            name: A source, view or table.
            rows: How many to show.
            sample: How many records of each source to take.
            fresh: Whether to take them from the source even if some have landed.

        Raises:
            UNKNOWN_DATASET: The app declares no such dataset.
            ARGUMENT_REFUSED: No rows are asked for.
            MillstreamError: It, or something it is made from, is wrong or cannot be read.
        """
        from millstream.trial.preview import try_out
        from millstream.trial.sample import SampleBounds
        from millstream.views.preview import Preview

        bounds = SampleBounds(rows=rows, sample=sample, fresh=fresh)
        raise_faults(self._declared.faults_of(name))
        home = self.home()
        home.verify(self.name)
        trial = try_out(self.graph, name, self._connect()(), home, bounds)
        return Preview.of(name, trial, rows=rows)

    def frontier(self, name: str, *, version: int | None = None) -> datetime | None:
        """Up to which event time a table or a landed source is complete, now or at a version.

        No row or change to come stems from an earlier event. None if nothing is complete yet, or
        if it cannot be known: without an event time, after a join in Spark's own words, or of a
        live source. Needs no Spark.

        Raises:
            UNKNOWN_TABLE: There is no such table.
            UNKNOWN_VERSION: The table has no such version.
        """
        from millstream.lake.frontier import moment
        from millstream.lake.log import facts_of
        from millstream.lake.travel import existing_version

        path = self.home().existing(name)
        if version is not None:
            existing_version(path, name, version)
        return moment(facts_of(path, version=version).frontier)

    def state(self, name: str) -> DataFrame:
        """Read what a function with state keeps, one row for each key, as its last batch left it.

        Raises:
            UNKNOWN_STATE: Nothing that has run keeps a state by this name.
        """
        from millstream.build.states import read_state

        return read_state(self._connect()(), self.home(), name)

    def home(self, path: str | Path | None = None) -> Home:
        """The folder this app is deployed in: once it has run, the one it ran in last."""
        from millstream.lake.home import Home

        if path is None and self._deployed is not None:
            return self._deployed
        raise_faults(self.profile.faults)
        in_profile = self.profile.home
        return Home.at(resolve_home(path, app=self.name, profile=in_profile, code=self._home).value)

    def master(self, url: str | None = None) -> str:
        """The Spark master this app runs on."""
        return resolve_master(url, profile=self.profile.master, code=self._master).value

    def settings(
        self, *, home: str | Path | None = None, master: str | None = None
    ) -> Mapping[str, Setting]:
        """Every value that decides where and how this app runs, and where it came from."""
        from millstream.bind.all_settings import all_settings

        profile = self.profile
        where = resolve_home(home, app=self.name, profile=profile.home, code=self._home)
        runs_on = resolve_master(master, profile=profile.master, code=self._master)
        app = {"home": where, "master": runs_on, "keep_versions": self._kept_versions}
        return all_settings(self.bound, profile, app)

    def open(self, options: RunOptions, **watchers: Any) -> ApplicationRun:
        """Lock the home, start Spark and open every query; nothing runs yet."""
        from millstream.run.application import ApplicationRun

        if self.is_running:
            raise fault("ALREADY_RUNNING", app=self.name)
        self._for_next_start.clear()
        if profile := options.get("profile"):
            self.choose(profile)
        self.raise_faults()
        self._deployed = self.home(options.get("home"))
        return ApplicationRun.open(
            self.graph,
            self._deployed,
            connect=self._connect(options.get("master")),
            options={**options, "settings": self._settings_of(options)},
            **watchers,
        )

    def _settings_of(self, options: RunOptions) -> Mapping[str, Setting]:
        return self.settings(home=options.get("home"), master=options.get("master"))

    def raise_faults(self, *, places: bool = True) -> None:
        """Raise if anything is wrong with the declarations.

        Args:
            places: Whether the places that sources read must exist; made-up rows need none.
        """
        raise_faults(self._declared.faults(places=places))

    @property
    def _kept_versions(self) -> Setting:
        default = Setting(KEEP_VERSIONS, "default")
        return self.profile.keep_versions or self._keep_versions or default

    def _connect(self, master: str | None = None) -> Callable[..., SparkSession]:
        from millstream.spark.session import open_session

        conf = self.bound.spark
        return partial(open_session, self.name, master=self.master(master), conf=conf)

    @property
    def is_running(self) -> bool:
        """Whether it runs in this process."""
        thread = self._thread
        return self._running is not None and (thread is None or thread.is_alive())

    def __repr__(self) -> str:
        from millstream.views.report import AppView

        state = " · running" if self.is_running else ""
        return f"<App {AppView.of(Graph(self.name, self._register.datasets))}{state}>"

    def _repr_html_(self) -> str:
        """Draw the app in a notebook, and say how it runs and what is wrong with it so far."""
        from millstream.views.notebook import to_html

        running = self._running if self.is_running else None
        faults = (*self.faults, *((self._died_of,) if self._died_of is not None else ()))
        return to_html(self.graph, running, faults, self._for_next_start)

    def _serve(self, running: ApplicationRun) -> None:
        try:
            running.serve()
        except Exception as error:
            self._died_of = error

    def declare_folder(self, folder: Path, at: Location) -> None:
        """Declare the datasets of the SQL files of a folder."""
        files, cell = files_of(folder), execution()
        known = Kinds(kinds(), store_kinds(), destination_kinds())
        if not files:
            missing = fault("NO_SQL_FILES", at=at, folder=relative(str(folder)))
            self._enter(Declaration(str(folder), None, (missing,), cell))
        for file in files:
            read = read_file(file, known)
            self._enter(Declaration(read.name, read.dataset, tuple(read.faults), cell))

    def _enter(self, entry: Declaration) -> None:
        super()._enter(entry)
        if self.is_running and entry.dataset is not None:
            self._for_next_start.append(entry.name)
            message = f"{self.name!r} runs: {entry.name!r} as declared here is for its next start"
            at = entry.dataset.at
            warnings.warn_explicit(message, UserWarning, at.file, at.line)

"""The front door: an application to declare, run, read and stop."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from millstream import check, declare
from millstream.bind import bind
from millstream.bind.kind import kinds
from millstream.declare.file import files_of, read_file
from millstream.errors import (
    AlreadyRunningError,
    EmptyAppError,
    FaultsError,
    Location,
    LookupRefusedError,
    MillstreamError,
    NoSqlFilesError,
    NotServedError,
    UnknownInputError,
    relative,
)
from millstream.model.dataset import StoreSink
from millstream.model.graph import Graph
from millstream.settings import Setting, resolve_home, resolve_master
from millstream.settings.profile import read_profile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.bind import Bound
    from millstream.declare import ServeOptions, SourceOptions, TableOptions
    from millstream.lake.home import Home
    from millstream.model.dataset import Dataset
    from millstream.run.application import ApplicationRun
    from millstream.settings.profile import Profile

Function = TypeVar("Function", bound="Callable[..., Any]")


class RunOptions(TypedDict, total=False):
    """How to run: what the command line offers too."""

    profile: str
    """A profile of millstream.toml."""
    home: str | Path
    master: str
    once: bool
    """Stop when nothing is left."""
    trigger: str
    select: Sequence[str]
    exclude: Sequence[str]
    takeover: bool
    fail_fast: bool


class App:
    """A continuous application: sources, views and tables, declared by plain functions and SQL.

    The decorators return the function unchanged, so that a test may call it with any DataFrame.
    """

    def __init__(
        self,
        name: str,
        *,
        home: str | Path | None = None,
        master: str | None = None,
        trigger: str | None = None,
    ) -> None:
        self.name, self._trigger = name, trigger
        self.at = declare.location_of_caller()
        in_code = f"code ({self.at})"
        self._home = Setting(str(home), in_code) if home else None
        self._master = Setting(master, in_code) if master else None
        self._folder = Path(self.at.file).absolute().parent
        self._profile: Profile | None = None
        self._declared: list[Dataset] = []
        self._refused: list[MillstreamError] = []
        self._unmade: set[str] = set()
        self._readers: dict[object, Any] = {}
        self._running: ApplicationRun | None = None
        self._deployed: Home | None = None
        self._thread: threading.Thread | None = None
        self._died_of: Exception | None = None

    def source(self, **options: Unpack[SourceOptions]) -> Callable[[Function], Function]:
        """Declare where rows come from: the function returns a connector."""

        def register(function: Function) -> Function:
            self._declare(lambda: declare.source_of(function, options))
            return function

        return register

    def view(self, function: Function) -> Function:
        """Declare a named query, inlined into whoever reads it."""
        self._declare(lambda: declare.view_of(function))
        return function

    def table(self, **options: Unpack[TableOptions]) -> Callable[[Function], Function]:
        """Declare a query whose answer is kept as a Delta table."""

        def register(function: Function) -> Function:
            self._declare(lambda: declare.table_of(function, options))
            return function

        return register

    def serve(self, **options: Unpack[ServeOptions]) -> Callable[[Function], Function]:
        """Declare a query whose answer goes to sinks."""

        def register(function: Function) -> Function:
            self._declare(lambda: declare.serve_of(function, options))
            return function

        return register

    def sql(self, name: str, query: str, /, **options: Unpack[TableOptions]) -> None:
        """Declare a table by a query; the names after FROM are what it reads."""
        at = declare.location_of_caller()
        self._declare(lambda: declare.sql_table_of(name, query, at, options))

    def sql_view(self, name: str, query: str) -> None:
        """Declare a view by a query; the names after FROM are what it reads."""
        at = declare.location_of_caller()
        self._declare(lambda: declare.sql_view_of(name, query, at))

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
    def bound(self) -> Bound:
        """What is declared so far, as the profile would have it."""
        return bind(self._declared, self.profile)

    def sql_files(self, folder: str | Path) -> None:
        """Declare the datasets of a folder of SQL files, each by its header and its query.

        A relative folder is looked for beside the file that calls this.
        """
        at = declare.location_of_caller()
        beside = Path(at.file).parent if Path(at.file).is_file() else Path()
        self.take_in(beside / folder, at)

    @property
    def graph(self) -> Graph:
        """What is declared so far; its sources come from where the profile says."""
        return self._graph_of(self.bound)

    @property
    def faults(self) -> tuple[MillstreamError, ...]:
        """Everything that is wrong with the declarations; found without Spark."""
        bound = self.bound
        found = check.faults(self._graph_of(bound))
        if self._refused:
            found = tuple(e for e in found if not self._follows(e))
        return (*bound.faults, *sorted((*self._refused, *found), key=check.place))

    def run(self, **options: Unpack[RunOptions]) -> None:
        """Run until it is stopped, or with `once` until nothing is left.

        Raises:
            MillstreamError: The app is wrong, or a query stopped for good.
        """
        self._running = running = self.open(options)
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
            UnknownTableError: There is no such table.
            UnknownVersionError: The table has no such version.
        """
        from millstream.lake.travel import read_table

        home = self.home()
        home.existing(name)
        return read_table(self._connect()(), home, name, version=version)

    def get(self, name: str, /, **key: Any) -> dict[str, Any] | None:
        """Look up one row of a served answer in its store, by its key; None if it has none.

        Of several stores, the first is asked; the connection stays open for the next look-up.

        Raises:
            NotServedError: The answer is in no store.
            LookupRefusedError: Other columns are given than those of the key.
        """
        dataset = self.graph.datasets.get(name)
        served = {s.name: k for s in self.graph.serves for k in s.to if isinstance(k, StoreSink)}
        sinks = [s for s in getattr(dataset, "to", ()) if isinstance(s, StoreSink)]
        if not sinks:
            raise NotServedError(name, served=tuple(served))
        if set(key) != set(sinks[0].key):
            raise LookupRefusedError(name, given=tuple(key), key=sinks[0].key)
        asked = (name, sinks[0])
        if asked not in self._readers:
            self._readers[asked] = sinks[0].reader(name)
        row: dict[str, Any] | None = self._readers[asked].get({k: key[k] for k in sinks[0].key})
        return row

    def home(self, given: str | Path | None = None) -> Home:
        """The folder this app is deployed in: once it has run, the one it ran in last."""
        from millstream.lake.home import Home

        if given is None and self._deployed is not None:
            return self._deployed
        FaultsError.raise_for(self.profile.faults)
        said = self.profile.home
        return Home.at(resolve_home(given, app=self.name, profile=said, code=self._home).value)

    def master(self, given: str | None = None) -> str:
        """The Spark master this app runs on."""
        return resolve_master(given, profile=self.profile.master, code=self._master).value

    def settings(
        self, *, home: str | Path | None = None, master: str | None = None
    ) -> Mapping[str, Setting]:
        """Every value that decides where and how this app runs, and where it came from."""
        from millstream.bind.account import account

        said = self.profile
        where = resolve_home(home, app=self.name, profile=said.home, code=self._home)
        runs_on = resolve_master(master, profile=said.master, code=self._master)
        return account(self.bound, said, home=where, master=runs_on)

    def open(self, options: RunOptions, **watchers: Any) -> ApplicationRun:
        """Lock the home, start Spark and open every query; nothing runs yet."""
        from millstream.run.application import ApplicationRun

        if self._running is not None:
            raise AlreadyRunningError(self.name)
        if profile := options.get("profile"):
            self.choose(profile)
        self.raise_faults()
        self._deployed = self.home(options.get("home"))
        return ApplicationRun.open(
            self.graph,
            self._deployed,
            connect=self._connect(options.get("master")),
            options=options,
            **watchers,
        )

    def raise_faults(self) -> None:
        """Raise if anything is wrong with the declarations."""
        FaultsError.raise_for(self.faults)

    def _graph_of(self, bound: Bound) -> Graph:
        return Graph(self.name, bound.declared, self._trigger)

    def _connect(self, master: str | None = None) -> Callable[..., SparkSession]:
        from millstream.spark.session import open_session

        conf = self.bound.spark
        return partial(open_session, self.name, master=self.master(master), conf=conf)

    def _repr_html_(self) -> str:
        """Draw the app in a notebook, and say what is wrong with it so far."""
        from html import escape

        from millstream.views.drawing import to_html
        from millstream.views.graph import GraphView

        faults = "".join(f"<pre>{escape(str(fault))}</pre>" for fault in self.faults)
        return to_html(GraphView.of(self.graph)) + faults

    def _serve(self, running: ApplicationRun) -> None:
        try:
            running.serve()
        except Exception as error:
            self._died_of = error

    def take_in(self, folder: Path, at: Location) -> None:
        """Declare what the SQL files of a folder say."""
        files = files_of(folder)
        if not files:
            self._refused.append(NoSqlFilesError(relative(str(folder)), at=at))
        for file in files:
            read = read_file(file, kinds())
            self._refused.extend(read.faults)
            if read.dataset is None:
                self._unmade.add(read.name)
            else:
                self._declared.append(read.dataset)

    def _follows(self, error: MillstreamError) -> bool:
        """Tell whether a fault is there only because of one that was found before."""
        unmade = isinstance(error, UnknownInputError) and error.name in self._unmade
        return unmade or isinstance(error, EmptyAppError)

    def _declare(self, make: Callable[[], Dataset]) -> None:
        try:
            self._declared.append(make())
        except MillstreamError as error:
            self._refused.append(error)

"""The front door: an application to declare, run, read and stop."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import sys
import threading
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from millstream import check, declare
from millstream.bind import bind
from millstream.declare.file import files_of, read_file
from millstream.deferral import deferred
from millstream.errors import (
    AlreadyRunningError,
    AppFileError,
    AppFileMissingError,
    EmptyAppError,
    FaultsError,
    Location,
    MillstreamError,
    NoAppError,
    NoSqlFilesError,
    SqlFileAloneError,
    TwoAppsError,
    UnknownInputError,
    relative,
)
from millstream.model.graph import Graph
from millstream.settings import Setting, resolve_home, resolve_master
from millstream.settings.profile import read_profile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from pyspark.sql import DataFrame, SparkSession

    from millstream.bind import Bound
    from millstream.declare import SourceOptions, TableOptions
    from millstream.lake.home import Home
    from millstream.model.dataset import Connector, Dataset
    from millstream.run.application import ApplicationRun
    from millstream.settings.profile import Profile

DEFAULT_FILE = "app.py"
"""The app file that is meant where none is named."""

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
        self, name: str, *, home: str | Path | None = None, master: str | None = None
    ) -> None:
        self.name = name
        self.at = declare.location_of_caller()
        in_code = f"code ({self.at})"
        self._home = Setting(str(home), in_code) if home else None
        self._master = Setting(master, in_code) if master else None
        self._folder = Path(self.at.file).absolute().parent
        self._profile: Profile | None = None
        self._declared: list[Dataset] = []
        self._refused: list[MillstreamError] = []
        self._unmade: set[str] = set()
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
        self._take_in(beside / folder, at)

    @property
    def graph(self) -> Graph:
        """What is declared so far; its sources come from where the profile says."""
        return Graph(self.name, self.bound.declared)

    @property
    def faults(self) -> tuple[MillstreamError, ...]:
        """Everything that is wrong with the declarations; found without Spark."""
        bound = self.bound
        found = check.faults(Graph(self.name, bound.declared))
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

    def home(self, given: str | Path | None = None) -> Home:
        """The folder this app is deployed in: once it has run, the one it ran in last."""
        from millstream.lake.home import Home

        if given is None and self._deployed is not None:
            return self._deployed
        _raise(self.profile.faults)
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
        _raise(self.faults)

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

    def _take_in(self, folder: Path, at: Location) -> None:
        files = files_of(folder)
        if not files:
            self._refused.append(NoSqlFilesError(relative(str(folder)), at=at))
        for file in files:
            read = read_file(file, _connectors())
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


def load(path: str, profile: str | None = None) -> App:
    """Find the App of a file, given as `file.py` or `file.py:name`, or of a folder.

    A folder is the app of its `app.py`, or of its SQL files if it has none. Its profile is chosen.

    Raises:
        AppFileMissingError: There is no such file, or nothing in the folder.
        SqlFileAloneError: It is one file of SQL.
        AppFileError: The file raises.
        NoAppError: It holds no App, or none of that name.
        TwoAppsError: It holds several, and none was named.
    """
    file, name = _split(path)
    if file.is_dir():
        return _of_folder(file, profile)
    module = _import(file)
    _pickle_by_value(module)
    return _chosen(_only(file, name, module), file, profile)


def load_without_spark(path: str, profile: str | None = None) -> App:
    """Find the App of a file as `load` does, for its declarations alone: pyspark is not imported.

    A file that uses pyspark while it is read, say for a schema, imports it all the same.
    """
    file, name = _split(path)
    if file.is_dir():
        return _of_folder(file, profile)
    try:
        with deferred("pyspark"):
            return _chosen(_only(file, name, _import(file)), file, profile)
    except AppFileError:
        # What stood for pyspark may be the cause, so the real one has the word.
        return load(path, profile)


def _of_folder(folder: Path, profile: str | None) -> App:
    app = App(folder.name)
    app._take_in(folder, Location(relative(str(folder)), 1))
    app.choose(profile, beside=folder)
    return app


def _chosen(app: App, file: Path, profile: str | None) -> App:
    app.choose(profile, beside=file.parent)
    return app


def _only(file: Path, name: str | None, module: ModuleType) -> App:
    held = {key: value for key, value in vars(module).items() if isinstance(value, App)}
    shown = relative(str(file))
    if name is not None and name not in held:
        raise NoAppError(shown, name=name, names=tuple(held))
    if name is not None:
        return held[name]
    apps = {id(app): key for key, app in reversed(held.items())}
    if not apps:
        raise NoAppError(shown)
    if len(apps) > 1:
        raise TwoAppsError(shown, names=[key for key in held if key in apps.values()])
    return next(iter(held.values()))


def find_home(
    path: str | None, given: str | Path | None = None, profile: str | None = None
) -> Home:
    """Find the home of an app file, without running the file if it says it plainly.

    Raises:
        AppFileMissingError: There is no such file.
        MillstreamError: The file has to be run to know, and is wrong.
    """
    from millstream.lake.home import Home

    if path is None and given is not None:
        return Home.at(given)
    file, name = _split(path or DEFAULT_FILE)
    if file.is_dir():
        return _of_folder(file, profile).home(given)
    if (said := _said_plainly(file, name)) is None:
        return load_without_spark(path or DEFAULT_FILE, profile).home(given)
    chosen = read_profile(file.parent, profile)
    _raise(chosen.faults)
    code = Setting(said["home"], "code") if said.get("home") else None
    found = resolve_home(given, app=said["name"], profile=chosen.home, code=code)
    return Home.at(found.value)


def _raise(faults: Sequence[MillstreamError]) -> None:
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise FaultsError(faults)


def find_deployed(
    path: str | None, given: str | Path | None, profile: str | None = None
) -> tuple[Home, Graph | None]:
    """Find what an app file declares and where it is deployed, without Spark.

    A home that is given without an app file is taken for itself; nothing is known of the app then.

    Raises:
        MillstreamError: The app is wrong, or the home is another's.
    """
    from millstream.lake.home import Home

    if path is None and given is not None:
        home = Home.at(given)
        home.verify_in_use()
        return home, None
    app = load_without_spark(path or DEFAULT_FILE, profile)
    app.raise_faults()
    home = app.home(given)
    home.verify(app.name)
    return home, app.graph


def _connectors() -> Mapping[str, Callable[..., Connector]]:
    """Name the connectors of the public API as headers do."""
    import millstream

    kinds = (getattr(millstream, name) for name in millstream.__all__)
    return {k.__name__.lower(): k for k in kinds if isinstance(k, type) and hasattr(k, "codec")}


def _split(path: str) -> tuple[Path, str | None]:
    """Find the file, or the folder of SQL files, and the name of the App in it."""
    text, colon, name = path.rpartition(":")
    if not colon or not name.isidentifier():
        text, name = path, ""
    if Path(text).is_dir():
        text = str(Path(text) / DEFAULT_FILE)
    file = Path(text).absolute()
    if not file.is_file() and file.name == DEFAULT_FILE and files_of(file.parent):
        return Path(os.path.abspath(file.parent)), None
    if file.suffix == ".sql" and file.is_file():
        raise SqlFileAloneError(text, folder=str(Path(text).parent))
    if not file.is_file():
        folder = Path(text).parent if Path(text).parent.is_dir() else Path()
        raise AppFileMissingError(text, nearby=[str(f) for f in sorted(folder.glob("*.py"))])
    return file, name or None


def _import(file: Path) -> ModuleType:
    folder = str(file.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
        # Modules beside the app are imported by Python workers too.
        known = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join((folder, known)) if known else folder
    digest = hashlib.sha256(str(file).encode()).hexdigest()[:8]
    spec = importlib.util.spec_from_file_location(f"millstream_app_{file.stem}_{digest}", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except MillstreamError as error:
        raise error.located(_line(file, error) or Location(str(file), 1)) from error.__cause__
    except (Exception, SystemExit) as error:
        cause = error.msg if isinstance(error, SyntaxError) else error
        told = f"{type(error).__name__}: {cause}"
        at = _line(file, error)
        raise AppFileError(relative(str(file)), cause=told, at=at) from error
    return module


def _pickle_by_value(module: ModuleType) -> None:
    """Have the functions of an app file travel whole: no worker can import it by name."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _line(file: Path, error: BaseException) -> Location | None:
    """Say which line of the user's an error comes from."""
    if isinstance(error, SyntaxError) and error.filename:
        return Location(relative(error.filename), error.lineno or 1)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return Location(relative(str(file)), lines[-1] or 1) if lines else None


def _said_plainly(file: Path, name: str | None) -> Mapping[str, str] | None:
    """Read the name and home of the only App of a file, if both are written as plain text."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return None
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _is_app(n.func)]
    if name is not None or len(calls) != 1 or len(calls[0].args) != 1:
        return None
    said = {"name": calls[0].args[0]}
    said |= {k.arg or "**": k.value for k in calls[0].keywords if k.arg != "master"}
    values = {key: v.value for key, v in said.items() if isinstance(v, ast.Constant)}
    texts = {key: value for key, value in values.items() if isinstance(value, str)}
    return texts if texts.keys() == said.keys() else None


def _is_app(function: ast.expr) -> bool:
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return called == "App"

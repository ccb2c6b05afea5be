"""Find the App of a file or a folder, and its home, with as little work as the caller needs."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import (
    Location,
    MillstreamError,
    closest,
    fault,
    listed,
    raise_faults,
    relative,
)
from millstream.settings import DEFAULT_FILE, Setting, resolve_home
from millstream.settings.profile import read_profile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from millstream.app import App
    from millstream.lake.home import Home
    from millstream.model.graph import Graph


def load(path: str, profile: str | None = None) -> App:
    """Find the App of a file, named as `file.py` or `file.py:name`, or of a folder.

    A folder is the app of its `app.py`, or of its SQL files if it has none. Its profile is chosen.

    Raises:
        APP_FILE_MISSING: There is no such file, or nothing in the folder.
        SQL_FILE_ALONE: It is one file of SQL.
        APP_FILE: The file raises.
        NO_APP: It holds no App, or none of that name.
        TWO_APPS: It holds several, and none was named.
    """
    file, name = _split(path)
    if file.is_dir():
        return _of_folder(file, profile)
    module = _import(file)
    _pickle_by_value(module)
    return _chosen(_only(file, name, module), file, profile)


def _of_folder(folder: Path, profile: str | None) -> App:
    from millstream.app import App

    _import_from(str(folder))
    app = App(folder.name)
    app.declare_folder(folder, Location(relative(str(folder)), 1))
    app.choose(profile, beside=folder)
    return app


def _chosen(app: App, file: Path, profile: str | None) -> App:
    app.choose(profile, beside=file.parent)
    return app


_DECLARE_ONE = 'declare one at the top level: app = ms.App("name")'


def _only(file: Path, name: str | None, module: ModuleType) -> App:
    from millstream.app import App

    held = {key: value for key, value in vars(module).items() if isinstance(value, App)}
    shown = relative(str(file))
    if name is not None and name not in held:
        offer = f"{closest(name, held)}Apps are {listed(held)}"
        instead = offer if held else _DECLARE_ONE
        raise fault("NO_APP", at=Location(shown, 1), file=shown, name=f" {name!r}", instead=instead)
    if name is not None:
        return held[name]
    apps = {id(app): key for key, app in reversed(held.items())}
    if not apps:
        raise fault("NO_APP", at=Location(shown, 1), file=shown, name="", instead=_DECLARE_ONE)
    if len(apps) > 1:
        names = [key for key in held if key in apps.values()]
        raise fault(
            "TWO_APPS",
            at=Location(shown, 1),
            file=shown,
            count=len(names),
            names=", ".join(names),
            first=names[0],
        )
    return next(iter(held.values()))


def find_home(
    path: str | None, home_path: str | Path | None = None, profile: str | None = None
) -> Home:
    """Find the home of an app file, without running the file if its name and home are plain text.

    Raises:
        APP_FILE_MISSING: There is no such file.
        MillstreamError: The file has to be run to know, and is wrong.
    """
    from millstream.lake.home import Home

    if path is None and home_path is not None:
        return Home.at(home_path)
    file, name = _split(path or DEFAULT_FILE)
    if file.is_dir():
        return _of_folder(file, profile).home(home_path)
    if (literals := _literal_arguments(file, name)) is None:
        return load(path or DEFAULT_FILE, profile).home(home_path)
    chosen = read_profile(file.parent, profile)
    raise_faults(chosen.faults)
    code = Setting(literals["home"], "code") if literals.get("home") else None
    found = resolve_home(home_path, app=literals["name"], profile=chosen.home, code=code)
    return Home.at(found.value)


def find_deployed(
    path: str | None, home_path: str | Path | None, profile: str | None = None
) -> tuple[Home, Graph | None]:
    """Find what an app file declares and where it is deployed, without Spark.

    With a home and no app file, nothing is known of the app.

    Raises:
        MillstreamError: The app is wrong, or the home is another's.
    """
    from millstream.lake.home import Home

    if path is None and home_path is not None:
        home = Home.at(home_path)
        home.verify_in_use()
        return home, None
    app = load(path or DEFAULT_FILE, profile)
    app.raise_faults()
    home = app.home(home_path)
    home.verify(app.name)
    return home, app.graph


def _split(path: str) -> tuple[Path, str | None]:
    """Find the file, or the folder of SQL files, and the name of the App in it."""
    text, colon, name = path.rpartition(":")
    if not colon or not name.isidentifier():
        text, name = path, ""
    if Path(text).is_dir():
        text = str(Path(text) / DEFAULT_FILE)
    file = Path(text).absolute()
    if not file.is_file() and file.name == DEFAULT_FILE and _has_sql(file.parent):
        return Path(os.path.abspath(file.parent)), None
    if file.suffix == ".sql" and file.is_file():
        raise fault("SQL_FILE_ALONE", file=text, folder=str(Path(text).parent))
    if not file.is_file():
        folder = Path(text).parent if Path(text).parent.is_dir() else Path()
        nearby = [str(f) for f in sorted(folder.glob("*.py"))]
        raise fault(
            "APP_FILE_MISSING", file=text, nearest=closest(text, nearby), nearby=listed(nearby)
        )
    return file, name or None


def _has_sql(folder: Path) -> bool:
    from millstream.declare.sql_file import files_of

    return bool(files_of(folder))


def _import(file: Path) -> ModuleType:
    _import_from(str(file.parent))
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
        message = error.msg if isinstance(error, SyntaxError) else error
        cause = f"{type(error).__name__}: {message}"
        at, shown = _line(file, error), relative(str(file))
        instead = f"correct the file; `python {shown}` shows the whole trace"
        if "SESSION_OR_CONTEXT_NOT_EXISTS" in cause:
            instead = (
                "Spark starts after the file is read: move the line into the function of a "
                "dataset; a UDF may stay if its type is an object such as StringType()"
            )
        raise fault("APP_FILE", at=at, file=shown, cause=cause, instead=instead) from error
    return module


def _import_from(folder: str) -> None:
    """Have the modules beside an app imported, by Python workers too."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
        known = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join((folder, known)) if known else folder


def _pickle_by_value(module: ModuleType) -> None:
    """Pickle the functions of an app file by value: no worker can import it by name."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _line(file: Path, error: BaseException) -> Location | None:
    """Return the line of the app file that an error comes from."""
    if isinstance(error, SyntaxError) and error.filename:
        return Location(relative(error.filename), error.lineno or 1)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return Location(relative(str(file)), lines[-1] or 1) if lines else None


def _literal_arguments(file: Path, name: str | None) -> Mapping[str, str] | None:
    """Read the name and home of the only App of a file, if both are written as plain text."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return None
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _is_app(n.func)]
    if name is not None or len(calls) != 1 or len(calls[0].args) != 1:
        return None
    literals = {"name": calls[0].args[0]}
    literals |= {k.arg or "**": k.value for k in calls[0].keywords if k.arg != "master"}
    values = {key: v.value for key, v in literals.items() if isinstance(v, ast.Constant)}
    texts = {key: value for key, value in values.items() if isinstance(value, str)}
    return texts if texts.keys() == literals.keys() else None


def _is_app(function: ast.expr) -> bool:
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return called == "App"

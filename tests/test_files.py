"""Who opens files: each folder of a home has one room, and other files have owners of their own."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src/millstream"
OPENING = {
    *("open", "read_text", "read_bytes", "write_text", "write_bytes", "write_durably"),
    *("mkdir", "touch", "unlink", "rmdir", "rmtree", "rename", "iterdir", "glob", "rglob"),
    *("scandir", "sync_file", "sync_folder", "ParquetFile", "write_table"),
}
"""Calls that open, list, make, rename or delete files."""
NOT_OF_PATHS = {"open": {"Alerts", "ApplicationRun", "Opening", "LiveTable", "opening", "self"}}
"""Objects with methods of these names that are no paths."""

HOME = {
    "lake": "tables/, staging/, states/, references/, models/, changes/, served/, lease/, manifest",
    "checkpoint": "checkpoints/",
    "repair": "checkpoints/, when they are repaired",
    "alert/deliveries.py": "alerts/",
    "observe/history_file.py": "observe/",
    "landing/inbox.py": "sources/, records that cannot be read again",
    "systems/record_source.py": "sources/, the position of a reader of Python",
    "systems/memory/source.py": "sources/, rows that a test adds",
    "systems/custom/sink.py": "sinks/, the fence of a function",
    "systems/files/sink.py": "sinks/, the fence of a folder; and the folder that a user names",
    "dstream": "dstream/, the journal, states and received rows of a functional program",
    "dstream/source.py": "sources/, the rows of a program of an app",
    "operators/state/raised_rows.py": "staging/, rows that a function raises on, written by tasks",
    "serve/changes.py": "changes/, the answers that a difference is taken from",
    "serve/serve_sink.py": "staging/, rows that a store refuses",
    "alert/outbox.py": "tables/, the files that a commit has added",
    "build/skew.py": "tables/, the newest rows of a landing",
    "upkeep/backup.py": "all of it, to copy it",
    "upkeep/forget.py": "all of it, to erase rows; receipts/",
    "upkeep/readers.py": "readers/, and references/ of readers that are behind",
    "upkeep/maintain.py": "maintenance/, what a driver is asked to do",
    "spark/session.py": "logs/, what the JVM logs",
    "cli/quiet.py": "logs/, what Python logs",
}
"""Who opens files of a home, and in which of its folders."""
OTHER = {
    "build/stream_plan.py": "a temporary folder",
    "trial/rehearse.py": "a temporary folder",
    "console/page_files.py": "the pages of the console, which are part of the package",
    "cli": "files that a user names, and the history of the prompt",
    "declare/sql_file.py": "the app of a user",
    "learn/onnx.py": "the model of a user",
    "loading.py": "the app of a user",
    "settings/profile.py": "millstream.toml",
    "doctor": "the machine",
    "observe/run_record.py": "the files of the app, of which a run records a hash",
    "errors": "pages, which are part of the package",
    "operators/reference.py": "reference data of a user",
    "spark": "jars, Java, and the archive of classes in the cache of this user",
    "sql/limits.py": "the memory of the machine",
    "systems": "what a user names: a schema, a table, a database, a log",
    "testing": "the home of a test, and servers",
    "views/sample_input.py": "files that a user names, of which a sample is proposed",
    "views/code.py": "the app of a user",
    "views/answer_file.py": "the file that an answer is written to",
}
"""Who opens files that are not of a home."""


def calls(tree: ast.AST) -> set[str]:
    """Name the calls of a module that open files."""
    found = set()
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        match call.func:
            case ast.Name(name) if name in OPENING:
                found.add(name)
            case ast.Attribute(value, name) if name in OPENING:
                of = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
                if of.strip("_") not in NOT_OF_PATHS.get(name, ()):
                    found.add(f"{of}.{name}")
    return found


def opening_modules() -> dict[str, set[str]]:
    """Return every module that opens files, and how."""
    found = {
        str(file.relative_to(SOURCE)): calls(ast.parse(file.read_text()))
        for file in SOURCE.rglob("*.py")
    }
    return {module: names for module, names in found.items() if names}


def owner_of(module: str) -> str | None:
    """Return the nearest owner: the module itself, or a folder above it."""
    path = Path(module)
    owners = HOME | OTHER
    return next((str(p) for p in (path, *path.parents) if str(p) in owners), None)


def test_only_owners_open_files() -> None:
    assert {m: names for m, names in opening_modules().items() if owner_of(m) is None} == {}


def test_every_owner_opens_files() -> None:
    assert {*map(owner_of, opening_modules())} == {*HOME, *OTHER}


def test_a_module_that_opens_a_file_is_found() -> None:
    text = "from pathlib import Path\nPath('home/states/a.json').read_text()"

    assert calls(ast.parse(text)) == {".read_text"}
    assert owner_of("plan/queries.py") is None
    assert owner_of("lake/home.py") == "lake"

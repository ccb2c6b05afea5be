"""Patterns, key=value pairs and functions of the user's, in every source of records."""

from __future__ import annotations

import socketserver
import textwrap
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.apps import rows, run, wait_for
from tests.faults import raises
from tests.systems.test_receivers import answers, post, running

import millstream as ms
from millstream.loading import load
from millstream.systems.custom.source import Custom
from millstream.testing.server import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame

    from millstream.landing.inbox import Inbox

pytestmark = pytest.mark.spark

ROW: Any = pa.schema({"n": pa.int32(), "word": pa.string()})  # type: ignore[arg-type]
PATTERN = r"(?P<n>\d+) (?P<word>\S+)"
SCHEMA = "n INT, word STRING"
LINES = {
    "text": ["1 a", "2 b", "x c"],
    "logfmt": ["n=1 word=a", 'word="b" n=2', "n=x"],
    "parse": ["1:a", "2:b", "x"],
}
MALFORMED = {
    "text": r"does not match the pattern: '(?P<n>\\d+)' is expected at character 1, near 'x c'",
    "logfmt": "expected int, got 'x', in column 'n'",
    "parse": "ValueError: invalid literal for int() with base 10: b'x' (test_readings.py:{})",
}


def halves(records: pa.RecordBatch) -> pa.RecordBatch:
    found: list[dict[str, Any]] = []
    for value in records.column("value").to_pylist():
        number, _, word = (value or b"").partition(b":")
        found.append({"n": int(number), "word": word.decode()})
    return pa.RecordBatch.from_pylist(found, schema=ROW)


def reading(kind: str) -> dict[str, Any]:
    """The options by which a source reads lines of a kind."""
    options: dict[str, dict[str, Any]] = {
        "text": {"format": "text", "pattern": PATTERN},
        "logfmt": {"format": "logfmt"},
        "parse": {"parse": halves},
    }
    return {"schema": SCHEMA, **options[kind]}


def declare(app: ms.App, name: str, connector: Any, **options: Any) -> None:
    app.source(name=name, **options)(lambda: connector)


def wanted(kind: str) -> list[tuple[Any, ...]]:
    reason = MALFORMED[kind].format(halves.__code__.co_firstlineno + 4)
    return [(1, "a", None), (2, "b", None), (None, None, reason)]


class Reader:
    """Lines that are there at once."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def earliest(self) -> dict[str, int]:
        return {"line": 0}

    def latest(self, start: Any) -> dict[str, int]:
        return {"line": len(self.lines)}

    def read(self, start: Any, end: Any) -> list[str]:
        return self.lines[start["line"] : end["line"]]


@pytest.fixture
def server() -> Iterator[int]:
    """A server that sends the lines of a socket."""

    class Sender(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall("".join(f"{line}\n" for line in LINES["parse"]).encode())
            done.wait()

    done = threading.Event()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Sender) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving.server_address[1]
        done.set()
        serving.shutdown()


def test_every_source_reads_every_kind_of_line(spark: object, server: int, tmp_path: Path) -> None:
    app, home, folder = ms.App("lines"), tmp_path / "home", tmp_path / "in"
    for kind, lines in LINES.items():
        (folder / kind).mkdir(parents=True)
        (folder / kind / "lines.txt").write_text("".join(f"{line}\n" for line in lines))
    memory = ms.Memory(**reading("text"))
    memory.add(*LINES["text"])
    [port] = free_ports(1)

    def receive(inbox: Inbox) -> None:
        for line in LINES["logfmt"]:
            inbox.offer(line)
        inbox.wait(60)

    sources: dict[str, tuple[str, Any]] = {
        **{
            f"files_{kind}": (kind, ms.Files(str(folder / kind), **reading(kind))) for kind in LINES
        },
        "own": ("parse", Custom(Reader(LINES["parse"]), **reading("parse"))),
        "rows": ("text", memory),
        "received": ("logfmt", ms.Receiver(receive, **reading("logfmt"))),
        "posted": ("text", ms.Http(port, **reading("text"))),
        "sent": ("parse", ms.Socket("127.0.0.1", server, **reading("parse"))),
    }
    for name, (_, connector) in sources.items():
        declare(app, name, connector)
    declare(app, "live", ms.Files(str(folder / "text"), **reading("text")), live=True)

    @app.table
    def direct(live: DataFrame) -> DataFrame:
        return live

    def landed(name: str, *columns: str) -> list[tuple[Any, ...]]:
        is_there = (home / "tables" / name / "_delta_log").exists()
        return sorted(rows(home, name, *columns), key=str) if is_there else []

    with running(app, home):
        wait_for(lambda: answers(port))
        post(port, "\n".join(LINES["text"]), "text/plain")
        wait_for(lambda: all(len(landed(name, "n")) == 3 for name in sources))
        wait_for(lambda: len(landed("direct", "n")) == 2)

    for name, (kind, _) in sources.items():
        assert landed(name, "n", "word", "_reason") == wanted(kind), name
    assert landed("direct", "n", "word") == [(1, "a"), (2, "b")]


def test_headers_and_profiles_say_the_same(spark: object, tmp_path: Path) -> None:
    folder = tmp_path / "lines"
    files = {
        "app/text.sql": f"-- source: files\n-- path: {folder}/text\n-- format: text\n"
        f"-- pattern: {PATTERN}\n-- schema: {SCHEMA}\n",
        "app/logfmt.sql": f"-- source: files\n-- path: {folder}/logfmt\n-- format: logfmt\n"
        f"-- schema: {SCHEMA}\n",
        "app/parse.sql": f"-- source: files\n-- path: {folder}/parse\n-- schema: {SCHEMA}\n"
        "-- parse: parsers_of_headers:halves\n",
        "app/access.sql": f"-- source: files\n-- path: {folder}/text\n-- format: text\n"
        f"-- schema: {SCHEMA}\n",
        "app/frames.sql": f"-- source: files\n-- path: {folder}/parse\n-- schema: {SCHEMA}\n",
        "app/millstream.toml": f"[profile.default.sources.access]\npattern = '{PATTERN}'\n"
        '[profile.default.sources.frames]\nparse = "parsers_of_headers:halves"\n',
        "app/parsers_of_headers.py": textwrap.dedent("""\
            import pyarrow as pa

            def halves(records):
                pairs = [value.partition(b":") for value in records.column("value").to_pylist()]
                rows = [{"n": int(n), "word": word.decode()} for n, _, word in pairs]
                return pa.RecordBatch.from_pylist(rows)
            """),
        **{f"lines/{k}/a.txt": "".join(f"{line}\n" for line in ls) for k, ls in LINES.items()},
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    app, home = load(str(tmp_path / "app")), tmp_path / "home"

    run(app, home)

    for name in ("text", "logfmt", "parse", "access", "frames"):
        landed = rows(home, name, "n", "word", "_verdict")
        assert landed == [(1, "a", "ok"), (2, "b", "ok"), (None, None, "malformed")], name


def test_a_function_that_is_wrong_itself_stops_the_source_at_its_line(
    spark: object, tmp_path: Path
) -> None:
    def parse(records: pa.RecordBatch) -> pa.RecordBatch:
        return undefined  # type: ignore[name-defined,no-any-return]  # noqa: F821

    memory = ms.Memory("n INT", parse=parse)
    memory.add("1")
    app = ms.App("lines")
    declare(app, "numbers", memory)

    with raises("UDF_RAISED") as caught:
        run(app, tmp_path)

    line = parse.__code__.co_firstlineno + 1
    assert caught.value.at is not None
    assert str(caught.value.at).endswith(f"test_readings.py:{line}")
    assert "NameError: name 'undefined' is not defined" in str(caught.value)

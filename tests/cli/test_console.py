from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest
from tests.systems.stores import OPENED, opened, put, table

import millstream as ms
from millstream.settings import TOKEN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Outcome

FLEET = """\
import millstream as ms
from pyspark.sql import DataFrame
app = ms.App("fleet")
@app.source()
def positions(): return ms.Memory("id BIGINT, text STRING")
@app.serve(to=ms.SQLite("fleet.db", table="latest", key="id"), mode="update")
def latest(positions: DataFrame) -> DataFrame: return positions
"""
WITHOUT_ENGINE = """\
import sys
from millstream.cli.interrupt import Interrupts
from millstream.cli.program import run_command
interrupts = Interrupts()
interrupts.install()
code = run_command(["console", "--port", "0", *sys.argv[1:]], interrupts)
engines = {"pandas", "duckdb"} & set(sys.modules)
sys.exit(str(engines) if engines else code)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `millstream console` as a process, in a folder in which something was served."""
    (tmp_path / "app.py").write_text(FLEET)
    sink = ms.SQLite(str(tmp_path / "fleet.db"), table="latest", key="id")
    put(opened(sink), 0, table({"id": 7, "text": "seven"}))
    OPENED.pop().close()
    started: list[subprocess.Popen[str]] = []

    def run(*words: str, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WITHOUT_ENGINE, *words]
        inherited = {k: v for k, v in os.environ.items() if k != TOKEN_VARIABLE}
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(
            subprocess.Popen(command, cwd=tmp_path, env=inherited | environment, **pipes)
        )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def row_at(url: str, token: str) -> Any:
    asked = Request(f"{url}api/get/latest?id=7", headers={"Authorization": f"Bearer {token}"})
    with urlopen(asked, timeout=30) as answer:
        return json.load(answer)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_without_an_engine_until_it_is_asked_to_end(
    start: Callable[..., subprocess.Popen[str]], by: signal.Signals
) -> None:
    process = start("--json")
    assert process.stdout is not None

    reported = json.loads(process.stdout.readline())
    row = row_at(reported["url"], reported["token"])
    process.send_signal(by)
    rest, err = process.communicate(timeout=30)

    assert row == {"id": 7, "text": "seven"}
    assert reported["app"] == "fleet"
    assert (process.returncode, rest, err) == (0, "", "")


def test_a_person_is_shown_the_address_with_its_token_and_what_to_type(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    process = start()
    assert process.stdout is not None

    lines = [process.stdout.readline() for _ in range(6)]
    address, _, _ = lines[2].removeprefix("  console   ").partition(" ")
    url, _, token = address.partition("#")

    assert lines[1] == "✓ app       fleet: 1 source, 1 serve\n"
    assert lines[2] == f"  console   {url}#{token}    open it; Ctrl-C ends it\n"
    assert lines[3].startswith(f"  to share  {url}#")
    assert lines[5] == f'  curl -H "Authorization: Bearer {token}" {url}api/served\n'
    assert len(token) == 32
    assert row_at(url, token) == {"id": 7, "text": "seven"}


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_token_of_the_environment_is_never_printed(
    start: Callable[..., subprocess.Popen[str]], words: list[str]
) -> None:
    process = start(*words, **{TOKEN_VARIABLE: "known-to-both"})
    assert process.stdout is not None

    if words:
        lines = [process.stdout.readline()]
        url = json.loads(lines[0])["url"]
        assert json.loads(lines[0])["token"] is None
    else:
        lines = [process.stdout.readline() for _ in range(6)]
        url = lines[2].split()[1]
        assert lines[5] == f'  curl -H "Authorization: Bearer ${TOKEN_VARIABLE}" {url}api/served\n'

    assert row_at(url, "known-to-both") == {"id": 7, "text": "seven"}
    assert "known-to-both" not in "".join(lines)


def test_a_port_that_is_taken_is_reported(millstream: Callable[..., Outcome]) -> None:
    Path("app.py").write_text(FLEET)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        outcome = millstream("console", "--port", str(port))

    assert outcome.code == 3
    assert outcome.refusal == [
        f"[PORT_TAKEN] the console cannot listen on 127.0.0.1:{port}: "
        f"[Errno 98] Address already in use (while attempting to bind on address "
        f"('127.0.0.1', {port}))",
        "  fix: give another port, or end what listens there",
    ]


@pytest.mark.parametrize("module", ["fastapi", "uvicorn"])
def test_a_missing_extra_is_reported_with_the_line_that_installs_it(
    millstream: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    Path("app.py").write_text(FLEET)
    for loaded in [name for name in sys.modules if name.startswith("millstream.console")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)

    outcome = millstream("console")

    assert outcome.code == 2
    assert outcome.refusal == [
        f"[EXTRA_MISSING] console needs the module {module!r}, which is not installed",
        '  fix: pip install "millstream[console]"',
    ]


def test_an_app_that_is_wrong_is_reported_as_check_does(millstream: Callable[..., Outcome]) -> None:
    Path("app.py").write_text(FLEET.replace("latest(positions", "latest(position"))

    outcome = millstream("console")

    assert outcome.code == 1
    assert outcome.refusal[0].startswith("[UNKNOWN_INPUT] ")

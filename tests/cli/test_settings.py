from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from millstream.bind.toml_reference import json_schema
from millstream.cli.program import program
from millstream.lake.home import Home
from millstream.loading import find_home, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Outcome

APP = """
import millstream as ms
app = ms.App("shop", home="in-code", master="local[1]")

@app.source(event_time="at", watermark="1 hour")
def orders():
    return ms.Files("in", schema="id BIGINT, at TIMESTAMP")

app.sql("paid", "SELECT id FROM orders")
"""
TOML = """\
[profile.default]
home = "in-default"

[profile.prod]
home = "in-prod"
master = "local[2]"

[profile.prod.spark]
"spark.hadoop.fs.s3a.secret.key" = "${CANARY}"

[profile.prod.sources.orders]
kind = "kafka"
bootstrap_servers = "${CANARY}"
topic = "orders-${CANARY}"
options."kafka.sasl.jaas.config" = "password='${CANARY}'"
"""
CANARY = "canary-xyzzy.invalid:1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("MILLSTREAM_HOME", "MILLSTREAM_MASTER", "MILLSTREAM_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CANARY", CANARY)
    Path("app.py").write_text(APP)
    Path("millstream.toml").write_text(TOML)
    return tmp_path


def settings(millstream: Callable[..., Outcome], *options: str) -> dict[str, tuple[str, str]]:
    outcome = millstream("settings", "app.py", *options, "--json")
    assert outcome.code == 0, outcome
    found = json.loads(outcome.out)["settings"]
    return {s["name"]: (s["value"], s["origin"]) for s in found}


def test_one_order_of_precedence_holds(
    millstream: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def home(*options: str) -> tuple[str, str]:
        return settings(millstream, *options)["home"]

    prod = ("--profile", "prod")
    assert home(*prod) == ("in-prod", "millstream.toml:5 (profile prod)")
    assert home() == ("in-default", "millstream.toml:2 (profile default)")
    monkeypatch.setenv("MILLSTREAM_HOME", "in-environment")
    assert home(*prod) == ("in-environment", "environment (MILLSTREAM_HOME)")
    assert home(*prod, "--home", "typed") == ("typed", "command line")
    monkeypatch.delenv("MILLSTREAM_HOME")
    Path("millstream.toml").unlink()
    assert home() == ("in-code", "code (app.py:3)")
    Path("app.py").write_text(APP.replace(', home="in-code"', ""))
    assert home() == (".millstream/shop", "default")


def test_every_value_has_its_origin(millstream: Callable[..., Outcome]) -> None:
    found = settings(millstream, "--profile", "prod")

    in_code = "code (app.py:5)"
    assert found["profile"] == ("prod", "command line")
    assert found["file"] == ("millstream.toml", "found")
    assert found["master"] == ("local[2]", "millstream.toml:6 (profile prod)")
    assert found["sources.orders.kind"] == ("kafka", "millstream.toml:12 (profile prod)")
    assert found["sources.orders.format"] == ("json", "default")
    assert found["sources.orders.schema"] == ("id BIGINT, at TIMESTAMP", in_code)
    assert found["sources.orders.watermark"] == ("1 hour", in_code)
    assert found["spark.sql.session.timeZone"] == ("UTC", "default")


def test_a_variable_is_shown_as_it_is_written(millstream: Callable[..., Outcome]) -> None:
    found = settings(millstream, "--profile", "prod")

    assert found["sources.orders.topic"][0] == "orders-${CANARY}"
    assert found["sources.orders.options.kafka.sasl.jaas.config"][0] == "password='${CANARY}'"
    assert found["spark.hadoop.fs.s3a.secret.key"][0] == "${CANARY}"


def test_a_password_in_the_code_is_not_shown(millstream: Callable[..., Outcome]) -> None:
    options = 'options={"kafka.ssl.key.password": "hunter2"}, schema='
    code = APP.replace('ms.Files("in", schema=', f'ms.Kafka("orders", {options}')
    Path("app.py").write_text(code)

    found = settings(millstream)

    assert found["sources.orders.options.kafka.ssl.key.password"][0] == "***"


def test_the_password_of_a_store_is_shown_by_no_command(millstream: Callable[..., Outcome]) -> None:
    address = '"postgresql://me:hunter22@db/shop"'
    Path("app.py").write_text(
        f"{APP}\napp.serve(name='served', to=ms.Postgres({address}))(lambda orders: orders)\n"
    )

    outcomes = [
        millstream(*words, "app.py", *more)
        for words in (["settings"], ["graph"], ["check", "--static"])
        for more in ([], ["--json"])
    ]

    reported = "".join(f"{outcome}" for outcome in outcomes)
    assert "hunter22" not in reported
    assert "postgresql://me:***@db/shop" in reported


def test_faults_are_shown_below_the_settings(
    millstream: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CANARY")

    outcome = millstream("settings", "app.py", "--profile", "prod")

    assert outcome.code == 1
    assert outcome.out.count("[VARIABLE_MISSING]") == 4
    assert "at:  millstream.toml:13" in outcome.out
    assert "in-prod" in outcome.out


def test_the_schema_for_editors_is_printed(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("settings", "--schema")

    assert json.loads(outcome.out) == json_schema()


def test_a_check_tells_faults_of_the_profile_and_of_the_app_at_once(
    millstream: Callable[..., Outcome],
) -> None:
    Path("millstream.toml").write_text('[profile.default.sources.ordrs]\nkind = "rate"\n')
    Path("app.py").write_text(APP + 'app.sql("b", "SELECT * FROM nothing")\n')

    outcome = millstream("check", "app.py", "--static", "--json")

    codes = [fault["code"] for fault in json.loads(outcome.out)["faults"]]
    assert (outcome.code, codes) == (1, ["UNKNOWN_SOURCE", "PATH_MISSING", "UNKNOWN_INPUT"])


def test_a_fault_of_a_bound_connector_is_reported_at_its_line() -> None:
    Path("millstream.toml").write_text('[profile.default.sources.orders]\npath = "nowhere"\n')

    [fault] = load("app.py").faults

    assert (fault.code, str(fault.at)) == ("PATH_MISSING", "millstream.toml:2")


def test_looking_at_a_home_needs_no_variable_of_its_sources(
    millstream: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CANARY")
    Home.at("in-prod").prepare("shop", sources=["orders"])

    assert find_home("app.py", profile="prod").path == Path.cwd() / "in-prod"
    for command in (("ledger",), ("checkpoint", "inspect")):
        outcome = millstream(*command, "app.py", "--profile", "prod")
        assert "nothing has run in home" in outcome.err


def test_an_unknown_profile_is_refused(millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("ledger", "app.py", "--profile", "pord")

    assert (outcome.code, outcome.err.splitlines()[1]) == (
        2,
        "  fix: did you mean 'prod'? profiles are default, prod",
    )


def commands() -> Iterator[tuple[str, typer.core.TyperCommand]]:
    def walk(name: str, command: object) -> Iterator[tuple[str, typer.core.TyperCommand]]:
        if isinstance(command, typer.core.TyperGroup):
            for below, sub in command.commands.items():
                yield from walk(f"{name} {below}".strip(), sub)
        elif isinstance(command, typer.core.TyperCommand):
            yield name, command

    return walk("", typer.main.get_command(program(["--help"])))


def test_every_command_on_an_app_takes_a_profile() -> None:
    on_apps = {n: c for n, c in commands() if any(p.name == "app" for p in c.params)}

    without = [n for n, c in on_apps.items() if not any("--profile" in p.opts for p in c.params)]

    assert len(on_apps) > 5
    assert without == []


def test_nothing_that_is_written_tells_a_secret(
    millstream: Callable[..., Outcome], folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    app = load("app.py", "prod")
    reported = [repr(app.graph), repr(app.bound), repr(app.profile), str(app.graph.sources)]
    reported += [str(source.connector) for source in app.graph.sources]
    Path("twice.py").write_text(
        APP + 'app.sql("b", "SELECT * FROM nothing")\nraise ValueError(app)\n'
    )
    for typed in (
        ("settings", "app.py"),
        ("settings", "app.py", "--json"),
        ("check", "app.py", "--static"),
        ("check", "app.py", "--static", "--json"),
        ("check", "twice.py", "--static"),
        ("ledger", "app.py"),
        ("ledger", "app.py", "--json"),
        ("query", "app.py", "SELECT 1"),
        ("checkpoint", "inspect", "app.py"),
        ("checkpoint", "repair", "app.py"),
        ("doctor", "app.py"),
        ("doctor", "app.py", "--json"),
    ):
        outcome = millstream(*typed, "--profile", "prod")
        reported += [outcome.out, outcome.err]

    written = [
        file.read_bytes().decode(errors="replace") for file in folder.rglob("*") if file.is_file()
    ]
    seen = "\n".join([*reported, *written, caplog.text])
    assert "${CANARY}" in seen
    assert "xyzzy" not in seen

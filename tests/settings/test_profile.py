from __future__ import annotations

from pathlib import Path

import pytest

from millstream.settings.profile import read_profile

SHOP = """\
[profile.default]
home = ".millstream/shop"

[profile.prod]
master = "spark://host:7077"

[profile.prod.spark]
"spark.executor.memory" = "4g"
spark.executor.cores = 2

[profile.prod.sources.orders]
kind = "kafka"
topic = "orders"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MILLSTREAM_PROFILE", raising=False)
    return tmp_path


def write(text: str, folder: Path | None = None) -> None:
    ((folder or Path()) / "millstream.toml").write_text(text)


def faults(text: str, profile: str | None = None) -> list[str]:
    write(text)
    return [str(fault) for fault in read_profile(Path.cwd(), profile).faults]


def test_without_a_file_nothing_is_said() -> None:
    profile = read_profile(Path.cwd())

    assert (profile.file, profile.home, profile.faults) == (None, None, ())


def test_a_value_knows_its_line_and_its_profile() -> None:
    write(SHOP)

    profile = read_profile(Path.cwd(), "prod")

    assert profile.master is not None
    assert profile.master.origin == "millstream.toml:5 (profile prod)"
    assert profile.home is not None
    assert profile.home.origin == "millstream.toml:2 (profile default)"
    origins = {name: entry.origin for name, entry in profile.spark.items()}
    assert origins == {
        "spark.executor.memory": "millstream.toml:8 (profile prod)",
        "spark.executor.cores": "millstream.toml:9 (profile prod)",
    }


def test_a_value_in_a_table_of_one_line_has_that_line() -> None:
    write('[profile.default]\nsources.orders = { kind = "rate" }\n')

    [entry] = read_profile(Path.cwd()).by_name("sources")["orders"].values()

    assert entry.at.line == 2


def test_the_profile_of_the_command_line_comes_before_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(SHOP)
    monkeypatch.setenv("MILLSTREAM_PROFILE", "prod")

    chosen = [read_profile(Path.cwd(), given).name for given in ("default", None)]

    assert [(c.value, c.origin) for c in chosen] == [
        ("default", "command line"),
        ("prod", "environment (MILLSTREAM_PROFILE)"),
    ]


def test_the_file_is_looked_for_as_far_as_the_root_of_the_repository(folder: Path) -> None:
    app = folder / "repository" / "apps" / "shop"
    app.mkdir(parents=True)
    write(SHOP, folder)

    assert read_profile(app).file is None

    (folder / "repository" / ".git").mkdir()
    assert read_profile(app).file is None

    write(SHOP, folder / "repository")
    assert read_profile(app).file == folder / "repository" / "millstream.toml"

    write(SHOP, app)
    assert read_profile(app).file == app / "millstream.toml"


def test_a_source_that_names_its_kind_takes_nothing_over() -> None:
    write(
        "[profile.default.sources]\n"
        'orders = { kind = "files", path = "in" }\n'
        'clicks = { kind = "files", path = "in" }\n'
        "[profile.prod.sources]\n"
        'orders = { kind = "kafka", topic = "orders" }\n'
        'clicks = { path = "/data/clicks" }\n'
    )

    sources = read_profile(Path.cwd(), "prod").by_name("sources")

    said = {name: {path: e.value for path, e in keys.items()} for name, keys in sources.items()}
    assert said == {
        "orders": {("kind",): "kafka", ("topic",): "orders"},
        "clicks": {("kind",): "files", ("path",): "/data/clicks"},
    }


def test_a_file_that_is_not_toml_is_refused_at_its_line() -> None:
    assert faults("[profile.default]\nhome = shop\n") == [
        "[PROFILE_FILE] the file cannot be read: Invalid value\n"
        "  at:  millstream.toml:2\n"
        "  fix: correct the line above"
    ]


def test_all_faults_are_reported_at_once_with_line_and_nearest_name() -> None:
    text = """\
profil = 1
[profile.default]
hom = "x"
master = 3
home = "${DATA}/shop"
sources = "orders"

[profile.prod.spark]
"executor.memory" = "4g"
"spark.executor.cores" = [1]

[profile.prod.sources]
orders = "kafka"
"""

    assert faults(text) == [
        "[UNKNOWN_KEY] 'profil' is no key of 'millstream.toml'\n"
        "  at:  millstream.toml:1\n"
        "  fix: did you mean 'profile'? keys are profile",
        "[UNKNOWN_KEY] 'hom' is no key of 'profile.default'\n"
        "  at:  millstream.toml:3\n"
        "  fix: did you mean 'home'? keys are alert, home, keep_versions, master, serve, "
        "sources, spark, tables",
        "[VALUE_REFUSED] 'profile.default.master' is 3 (an integer)\n"
        "  at:  millstream.toml:4\n"
        "  fix: write a text",
        "[VALUE_REFUSED] 'profile.default.home' is '${DATA}/shop' (a text)\n"
        "  at:  millstream.toml:5\n"
        "  fix: write it plainly, or set MILLSTREAM_HOME: the value of ${…} is never shown, "
        "and this is shown everywhere",
        "[VALUE_REFUSED] 'profile.default.sources' is 'orders' (a text)\n"
        "  at:  millstream.toml:6\n"
        "  fix: write a table: [profile.default.sources]",
        "[UNKNOWN_KEY] 'executor.memory' is no key of 'profile.prod.spark'\n"
        "  at:  millstream.toml:9\n"
        "  fix: did you mean 'spark.executor.memory'? keys are spark.executor.memory",
        "[VALUE_REFUSED] 'profile.prod.spark.spark.executor.cores' is an array\n"
        "  at:  millstream.toml:10\n"
        "  fix: write a text, a number or a boolean",
        "[VALUE_REFUSED] 'profile.prod.sources.orders' is 'kafka' (a text)\n"
        "  at:  millstream.toml:13\n"
        "  fix: write a table: [profile.prod.sources.orders]",
    ]


def test_a_profile_that_does_not_exist_is_refused_with_the_nearest_one() -> None:
    assert faults(SHOP, "pord") == [
        "[UNKNOWN_PROFILE] no profile 'pord' in millstream.toml\n"
        "  fix: did you mean 'prod'? profiles are default, prod"
    ]


def test_a_profile_without_a_file_is_refused() -> None:
    [fault] = read_profile(Path.cwd(), "prod").faults

    assert str(fault) == (
        "[UNKNOWN_PROFILE] no profile 'prod': there is no millstream.toml beside the app "
        "or above it\n"
        "  fix: write a millstream.toml with [profile.prod]"
    )

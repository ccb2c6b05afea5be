from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from tests.faults import raises

from millstream.lake.delta import FencedTable
from millstream.lake.home import FORMAT, Home
from millstream.model.schema import Schema


def test_a_home_written_by_a_newer_version_is_refused(tmp_path: Path) -> None:
    manifest = {"format": FORMAT + 1, "app": "shop", "written_by": "7.0", "sources": []}
    (tmp_path / "manifest").write_text(json.dumps(manifest))

    with raises("HOME_NEWER") as caught:
        Home.at(tmp_path).prepare("shop", sources=[])

    assert str(caught.value) == (
        f"[HOME_NEWER] home {str(tmp_path)!r} has format {FORMAT + 1}, written by millstream 7.0; "
        "this one knows formats up to 1\n"
        "  fix: use millstream 7.0 or later, or another --home"
    )


def test_a_home_is_made_for_its_owner_alone_and_one_that_exists_keeps_its_permissions(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    before = os.umask(0)
    try:
        Home.at(tmp_path / "deep" / "own").prepare("shop", sources=[])
        Home.at(shared).prepare("shop", sources=[])
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "deep" / "own").stat().st_mode) == 0o700
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755


def test_a_home_of_another_app_is_refused(tmp_path: Path) -> None:
    Home.at(tmp_path).prepare("shop", sources=[])

    with raises("HOME_OTHER_APP", match="belongs to app 'shop', not to 'fleet'"):
        Home.at(tmp_path).prepare("fleet", sources=[])


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    (tmp_path / "manifest").write_text("{")

    with raises("HOME_DAMAGED", match="manifest"):
        Home.at(tmp_path).prepare("shop", sources=[])


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with raises("HOME_UNUSABLE", match=r"File exists|Not a directory"):
        Home.at(tmp_path / "file").prepare("shop", sources=[])


@pytest.mark.parametrize("path", ["s3://bucket/home", Path("s3://bucket/home")])
def test_a_home_elsewhere_than_in_the_file_system_is_refused(path: str | Path) -> None:
    with raises("HOME_UNUSABLE", match="not a path of the local file system"):
        Home.at(path)


def test_an_unknown_table_is_refused_with_those_there_are(tmp_path: Path) -> None:
    FencedTable.create(Home.at(tmp_path).table("orders"), schema=Schema.parse("n INT").to_json())

    with raises("UNKNOWN_TABLE") as caught:
        Home.at(tmp_path).existing("ordres")

    assert str(caught.value) == (
        "[UNKNOWN_TABLE] no table 'ordres' in this home\n"
        "  fix: did you mean 'orders'? tables are orders"
    )


@pytest.mark.parametrize("name", ["100%25", "a[1]", "a*", "a|b", "a\nb"])
def test_a_home_that_delta_would_take_for_another_path_is_refused(
    tmp_path: Path, name: str
) -> None:
    with raises("HOME_UNUSABLE", match="Delta tables cannot have"):
        Home.at(tmp_path / name)


def test_a_home_may_have_blanks_accents_and_lone_percent_signs(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "zürich 50% = a+b #1")

    home.prepare("shop", sources=[])

    assert home.read_manifest()["app"] == "shop"

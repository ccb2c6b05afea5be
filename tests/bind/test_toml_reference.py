from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from tests.graphs import source, table

from millstream.bind import bind
from millstream.bind.kind import INHERITED, keys_of, kinds
from millstream.bind.toml_reference import json_schema, reference
from millstream.settings.profile import read_profile
from millstream.spark.defaults import OWNED

if TYPE_CHECKING:
    import pytest

    from millstream.model.dataset import Dataset

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "millstream-toml.md"


def test_every_field_of_a_connector_can_be_written_but_functions() -> None:
    for kind in kinds().values():
        written = {f.name for f in fields(kind) if not f.name.startswith("_")}

        assert written - set(keys_of(kind)) - set(INHERITED) <= {"make", "key"}


def test_the_reference_page_lists_what_can_be_written() -> None:
    assert reference() in PAGE.read_text(), "put the text of reference() into the page"


def test_the_json_schema_knows_every_kind_and_what_it_requires() -> None:
    profile = json_schema()["properties"]["profile"]["additionalProperties"]
    shapes = profile["properties"]["sources"]["additionalProperties"]["anyOf"]
    by_kind = {shape["properties"]["kind"]["const"]: shape for shape in shapes}

    assert set(by_kind) == set(kinds())
    assert by_kind["kafka"]["dependencies"] == {"kind": ["topic"]}
    assert by_kind["kafka"]["properties"]["starting_offsets"] == {"enum": ["earliest", "latest"]}
    assert by_kind["files"]["properties"]["csv"]["properties"]["header"] == {"type": "boolean"}
    assert "schema" not in by_kind["files"]["properties"]


def test_the_reference_page_lists_the_spark_settings_that_cannot_be_set() -> None:
    rows = [f"| `{name}` | {why} |" for name, why in OWNED.items()]

    assert "\n".join(rows) in PAGE.read_text()


def test_the_profiles_of_the_page_about_them_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (PAGE.parent.parent / "how-to" / "profiles.md").read_text()
    blocks = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("S3_KEY", "AKIA-4711")
    declared: list[Dataset] = [source("orders"), table("cheap", "orders")]

    for toml in blocks:
        (tmp_path / "millstream.toml").write_text(toml)
        for profile in ("default", "prod"):
            assert bind(declared, read_profile(tmp_path, profile)).faults == ()

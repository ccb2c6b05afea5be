"""The files of the web page: small, without inline code, and from this host only."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from millstream.console.page_files import page_files

STATIC = Path(__file__).parents[2] / "src" / "millstream" / "console" / "static"
OWN = sorted(file for file in STATIC.glob("*.js"))
MOST_SCRIPT = 150_000
FORBIDDEN = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function|srcdoc|"
    r"createContextualFragment|DOMParser|setHTMLUnsafe)\b"
)


def test_all_scripts_together_are_under_150_kb_compressed() -> None:
    scripts = [file for name, file in page_files().items() if name.endswith(".js")]

    assert len(scripts) > 20
    assert sum(len(file.content) for file in scripts) < MOST_SCRIPT


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.name)
def test_what_comes_from_data_is_never_parsed_as_html(file: Path) -> None:
    assert FORBIDDEN.findall(file.read_text()) == []


def test_the_page_has_no_inline_code_and_names_no_other_host() -> None:
    page = (STATIC / "index.html").read_text()

    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", page) == []
    assert re.findall(r"(?:src|href)=\"(?!/|#)", page) == []


@pytest.mark.parametrize("file", [*OWN, STATIC / "console.css"], ids=lambda file: file.name)
def test_no_script_or_style_asks_another_host(file: Path) -> None:
    addresses = re.findall(r"(?:https?:)?//[\w.]+\.\w+", file.read_text())

    # The name space of SVG is an identifier: nothing is read from there.
    assert {found for found in addresses if "w3.org" not in found} == set()


@pytest.mark.parametrize("name", ["uPlot", "dagre"])
def test_each_vendored_library_has_its_licence_beside_it(name: str) -> None:
    assert "Permission is hereby granted" in (STATIC / "vendor" / f"{name}.LICENSE.txt").read_text()
    assert list((STATIC / "vendor").glob(f"{name}*.js"))


def test_files_are_sent_compressed_and_whole() -> None:
    found = page_files()["main.js"]

    assert gzip.decompress(found.content) == (STATIC / "main.js").read_bytes()

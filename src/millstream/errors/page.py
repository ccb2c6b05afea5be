"""Pages: all that is known about an error, one file each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.errors.location import Location

PAGES = Path(__file__).with_name("pages")


@dataclass(frozen=True, slots=True)
class Page:
    """An error: its wording, with named places for the facts, and its explanation."""

    code: str
    kind: str
    """Who must act."""
    means: str
    what: str
    fix: str
    at: str
    """The part of a declaration to point to, such as an option or "from {reads}"."""
    transient: bool
    warning: bool
    text: str
    """The explanation, in Markdown."""

    @staticmethod
    def parse(text: str) -> Page:
        """Read a page: lines of `key: value` between two of `---`, then the explanation."""
        _, head, body = text.split("---\n", 2)
        pairs = dict(line.split(": ", 1) for line in head.splitlines())
        values = {key: _unquoted(value) for key, value in pairs.items()}
        transient, warning = (values.pop(flag, "") == "true" for flag in ("transient", "warning"))
        at = values.pop("at", "")
        return Page(**values, at=at, transient=transient, warning=warning, text=body)

    @property
    def places(self) -> frozenset[str]:
        """The names of the facts that its wording has places for."""
        parsed = (Formatter().parse(template) for template in (self.what, self.fix, self.at))
        return frozenset(name for parts in parsed for _, name, _, _ in parts if name)

    def point(self, at: Location | None, facts: Mapping[str, object]) -> Location | None:
        """Point to the part of a declaration that the error is about."""
        part = [word.format_map(facts) for word in self.at.split()]
        return at.of(*part) if at and part else at

    def __str__(self) -> str:
        return f"# {self.code}\n\n{self.text}"


def _unquoted(value: str) -> str:
    if value.startswith('"'):
        return str(json.loads(value))
    return value[1:-1].replace("''", "'") if value.startswith("'") else value


@cache
def read_page(code: str) -> Page:
    """Read the page of a code."""
    return Page.parse((PAGES / f"{code}.md").read_text(encoding="utf-8"))


def codes() -> tuple[str, ...]:
    """Every code, sorted."""
    return tuple(sorted(file.stem for file in PAGES.glob("*.md")))

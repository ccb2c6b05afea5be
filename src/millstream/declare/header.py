"""The header of a SQL file: leading comments that say what the dataset is, an option each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

_BEFORE = re.compile(r"(?:\s|/\*.*?\*/)*", re.DOTALL)
_COMMENT = re.compile(r"--(?P<indent>[ \t]*)(?P<text>.*?)\s*")
_QUOTED = r'"(?:[^"\\]|\\.)+"'
_OPTION = re.compile(
    rf'(?P<name>\w+(?:\.(?:{_QUOTED}|[^\s".:]+))*)(?:\s+"(?P<rule>[^"]+)")?\s*:\s*(?P<value>.*)'
)
_CONTINUES = 2
"""So many blanks after the dashes: the line continues the one above."""


@dataclass(frozen=True, slots=True)
class HeaderOption:
    """An option as it is written."""

    name: str
    rule: str | None
    """What stands in quotes after the name: of an expectation, its own."""
    value: str
    line: int

    @property
    def text(self) -> str:
        """The value; one in double quotes is read as in JSON."""
        try:
            return str(json.loads(self.value)) if self.value.startswith('"') else self.value
        except ValueError:
            return self.value


@dataclass(frozen=True, slots=True)
class Header:
    """The options of a file, in their order, and the lines among them that are none."""

    options: tuple[HeaderOption, ...]
    strays: tuple[tuple[int, str], ...]
    first_line: int


def read_header(text: str) -> Header:
    r"""Read the first block of `--` comments; it ends with the first line that is none.

    >>> [(o.name, o.value) for o in read_header("-- table: update\n-- key: item").options]
    [('table', 'update'), ('key', 'item')]
    >>> [o.name for o in read_header('-- rename.@at: at\n-- rename."user agent": agent').options]
    ['rename.@at', 'rename.user agent']
    """
    before = _BEFORE.match(text)
    assert before is not None
    first = text.count("\n", 0, before.end()) + 1
    options: list[HeaderOption] = []
    strays: list[tuple[int, str]] = []
    for number, line in enumerate(text[before.end() :].split("\n"), first):
        comment = _COMMENT.fullmatch(line)
        if comment is None:
            break
        option = _OPTION.fullmatch(comment["text"])
        if options and len(comment["indent"]) >= _CONTINUES:
            value = f"{options[-1].value} {comment['text']}".strip()
            options[-1] = replace(options[-1], value=value)
        elif option:
            name = _plain(option["name"])
            options.append(HeaderOption(name, option["rule"], option["value"], number))
        else:
            strays.append((number, line.strip()))
    return Header(tuple(options), tuple(strays), first)


def _plain(name: str) -> str:
    """Read the parts of a name that stand in double quotes as JSON has them."""

    def read(part: re.Match[str]) -> str:
        try:
            return str(json.loads(part[0]))
        except ValueError:
            return part[0]

    return re.sub(_QUOTED, read, name)

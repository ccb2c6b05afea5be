"""The header of a SQL file: leading comments that say what the dataset is, an option each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

_BEFORE = re.compile(r"(?:\s|/\*.*?\*/)*", re.DOTALL)
_COMMENT = re.compile(r"--(?P<indent>[ \t]*)(?P<text>.*?)\s*")
_OPTION = re.compile(r'(?P<name>[\w.]+)(?:\s+"(?P<rule>[^"]+)")?\s*:\s*(?P<value>.*)')
_CONTINUES = 2
"""So many blanks after the dashes: the line goes on where the one above ended."""


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
        said = _OPTION.fullmatch(comment["text"])
        if options and len(comment["indent"]) >= _CONTINUES:
            value = f"{options[-1].value} {comment['text']}".strip()
            options[-1] = replace(options[-1], value=value)
        elif said:
            options.append(HeaderOption(said["name"], said["rule"], said["value"], number))
        else:
            strays.append((number, line.strip()))
    return Header(tuple(options), tuple(strays), first)

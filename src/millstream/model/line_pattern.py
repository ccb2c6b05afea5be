r"""Patterns of lines: regular expressions whose named groups are the fields of a record.

>>> LinePattern(r"(?P<n>\d+) (a|b)").names
('n',)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_TIMES = r"(?:(?:[*+?]|\{\d+(?:,\d*)?\})\??)?"
_TOKEN = re.compile(
    rf"(?P<open>\((?:\?P<(?P<name>\w+)>)?)|(?P<or>\|)|(?P<close>\){_TIMES})|(?:\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.){_TIMES}",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class NamedPattern:
    """A pattern that many programs write, and the columns that it gives."""

    text: str
    schema: str
    formats: Mapping[str, str] = field(default_factory=dict)


_ACCESS = (
    r"(?P<host>\S+) (?:-|(?P<ident>\S+)) (?:-|(?P<user>.+?)) \[(?P<time>[^\]]+)\] "
    r'"(?:(?P<method>[A-Z]+) (?P<path>[^" ]+)(?: (?P<protocol>[^" ]+))?'
    r'|(?P<request>(?:[^"\\]|\\.)*))" '
    r"(?P<status>\d{3}) (?:-|(?P<bytes>\d+))"
)
_AGENT = r' "(?:-|(?P<referer>(?:[^"\\]|\\.)*))" "(?:-|(?P<agent>(?:[^"\\]|\\.)*))"'
_ACCESS_SCHEMA = (
    "host STRING, ident STRING, user STRING, time TIMESTAMP, method STRING, path STRING, "
    "protocol STRING, request STRING, status INT, bytes BIGINT"
)
_ACCESS_TIME = {"time": "dd/MMM/yyyy:HH:mm:ss Z"}
NAMED: Mapping[str, NamedPattern] = {
    "apache_common": NamedPattern(_ACCESS, _ACCESS_SCHEMA, _ACCESS_TIME),
    "apache_combined": NamedPattern(
        _ACCESS + _AGENT, f"{_ACCESS_SCHEMA}, referer STRING, agent STRING", _ACCESS_TIME
    ),
    "syslog_rfc3164": NamedPattern(
        r"(?:<(?P<priority>\d{1,3})>)?"
        r"(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) (?P<host>\S+) "
        r"(?P<program>[^\s:\[]+)(?:\[(?P<pid>[^\]]*)\])?: ?(?P<message>.*)",
        "priority INT, time STRING, host STRING, program STRING, pid STRING, message STRING",
    ),
    "syslog_rfc5424": NamedPattern(
        r"<(?P<priority>\d{1,3})>(?P<version>\d{1,3}) (?:-|(?P<time>\S+)) (?:-|(?P<host>\S+)) "
        r"(?:-|(?P<program>\S+)) (?:-|(?P<pid>\S+)) (?:-|(?P<msgid>\S+)) "
        r'(?:-|(?P<data>(?:\[[^\s="\]]+(?: [^\s="\]]+="(?:[^"\\\]]|\\.)*")*\])+))'
        r"(?: (?P<message>.*))?",
        "priority INT, version INT, time TIMESTAMP, host STRING, program STRING, pid STRING, "
        "msgid STRING, data STRING, message STRING",
    ),
}
"""By name."""


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A pattern as a user writes it: the name of a known one, or a regular expression."""

    written: str

    @property
    def named(self) -> NamedPattern | None:
        """The known one."""
        return NAMED.get(self.written)

    @property
    def text(self) -> str:
        """The regular expression."""
        return self.named.text if self.named else self.written

    @property
    def names(self) -> tuple[str, ...]:
        """The fields, in order.

        Raises:
            re.error: It cannot be read.
        """
        return tuple(re.compile(self.text).groupindex)

    @property
    def parts(self) -> tuple[str, ...]:
        r"""What follows one another in it, with groups that have no name made to capture nothing.

        >>> LinePattern(r"(?P<n>\d+) (a|b)?").parts
        ('(?P<n>\\d+)', ' ', '(?:a|b)?')
        """
        return self._parts(None)

    def matching(self, names: Collection[str]) -> str:
        """Return an expression of a whole line that captures these fields alone: it is faster."""
        return rf"\A(?:{''.join(self._parts(names))})\z"

    def _parts(self, captured: Collection[str] | None) -> tuple[str, ...]:
        parts, depth, has_choice = [""], 0, False
        for token in _TOKEN.finditer(self.text):
            name = token["name"]
            is_special = self.text[token.end() : token.end() + 1] == "?"
            is_left_out = captured is not None and name not in captured if name else not is_special
            parts[-1] += "(?:" if token["open"] and is_left_out else token[0]
            depth += bool(token["open"]) - bool(token["close"])
            has_choice = has_choice or (bool(token["or"]) and not depth)
            if not depth:
                parts.append("")
        return ("".join(parts),) if has_choice else tuple(filter(None, parts))

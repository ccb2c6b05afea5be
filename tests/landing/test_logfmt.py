"""Key=value records as a reader of single characters reads them, by the rules in docs."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings, strategies as st
from tests import raw

BLANKS = " \t\r\n\f\v"
SCHEMA = "a STRING, b STRING, `c.d` STRING"
NAMES = ("a", "b", "c.d")


def decoded(lines: list[str], schema: str = SCHEMA, **options: Any) -> list[dict[str, Any]]:
    return raw.decoded(lines, schema, "logfmt", **options)


class Scan:
    """Reads a line character by character."""

    def __init__(self, line: str) -> None:
        self.line, self.at = line, 0

    @property
    def here(self) -> str:
        """The character to be read next; a blank after the last one."""
        return self.line[self.at] if self.at < len(self.line) else " "

    def until(self, ends: str) -> str:
        begin = self.at
        while self.here not in BLANKS + ends:
            self.at += 1
        return self.line[begin : self.at]

    def quoted(self) -> str:
        begin = self.at
        self.at += 1
        while self.at < len(self.line) and self.line[self.at] != '"':
            self.at += 2 if self.line[self.at] == "\\" else 1
        self.at += 1
        return str(json.loads(self.line[begin : self.at], strict=False))

    def pair(self) -> tuple[str, str]:
        key, value = self.until('="'), "true"
        if self.here == "=":
            self.at += 1
            value = self.quoted() if self.here == '"' else self.until('"')
        elif key not in NAMES:
            raise ValueError(key)
        if not key or self.here not in BLANKS:
            raise ValueError(self.line)
        return key, value


def oracle(line: str) -> dict[str, str] | None:
    """Read a line; None if it is malformed."""
    scan, pairs = Scan(line), dict[str, str]()
    while scan.at < len(line):
        if scan.here in BLANKS:
            scan.at += 1
            continue
        try:
            key, value = scan.pair()
        except ValueError:
            return None
        pairs[key] = value
    return pairs


texts = st.text(st.sampled_from('ab cd.="\\\t\n\fné'), max_size=12)
pairs = st.tuples(
    st.sampled_from([*NAMES, "other", "é"]),
    st.sampled_from(["=", ""]),
    texts.map(json.dumps) | texts | st.sampled_from(['"', '""', '"\\q"', '"\\u00e9"', "x=y", "1"]),
).map("".join)


@given(st.lists(texts | st.lists(pairs, max_size=5).map(" ".join), min_size=1, max_size=12))
@settings(max_examples=800)
def test_records_are_read_by_the_rules_of_the_docs(lines: list[str]) -> None:
    found = decoded(lines)

    for line, row in zip(lines, found, strict=True):
        wanted = oracle(line)
        values = {name: (wanted or {}).get(name) or None for name in NAMES}
        assert (row["_reason"] is None) == (wanted is not None), (line, row["_reason"])
        assert {name: row[name] for name in NAMES} == values


@given(st.dictionaries(st.sampled_from(NAMES), st.text(min_size=1), max_size=3))
def test_what_is_written_with_quotes_is_read_back(values: dict[str, str]) -> None:
    line = " ".join(f"{key}={json.dumps(value)}" for key, value in values.items())

    [row] = decoded([line])

    assert {name: row[name] for name in values} == values


def test_a_blank_in_quotes_is_kept_as_it_is() -> None:
    [row] = decoded(['a="x\t\\"y\\"\n"'])

    assert row["a"] == 'x\t"y"\n'


def test_values_are_read_by_the_types_and_formats_of_their_columns() -> None:
    found = decoded(
        [
            "ts=1779112800000 level=info n=5 slow",
            "ts=soon",
            "n=5.5",
            "n=300",
            "Traceback (most recent call last):",
            'msg="open',
            'msg="a"b',
            "=x",
            'msg="\\q"',
        ],
        "at TIMESTAMP, level STRING, n TINYINT, slow BOOLEAN",
        rename={"ts": "at"},
        formats={"at": "epoch_ms"},
    )

    assert [str(found[0][n]) for n in ("at", "level", "n", "slow")] == [
        "2026-05-18 14:00:00+00:00",
        "info",
        "5",
        "True",
    ]
    assert [row["_reason"] for row in found[1:]] == [
        "expected timestamp as epoch_ms, got 'soon', in column 'ts'",
        "expected int, got '5.5', in column 'n'",
        "300 does not fit TINYINT, in column 'n'",
        "not logfmt: 'Traceback' is no key=value, and no column",
        "not logfmt: a quote is not closed, near 'msg=\"open'",
        'not logfmt: expected key=value or key="value", got \'msg="a"b\'',
        "not logfmt: expected key=value or key=\"value\", got '=x'",
        "not logfmt: an escape is unknown, in '\\\\q'",
    ]

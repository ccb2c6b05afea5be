"""Lines as Python's re reads them, an independent matcher, and where they stop to match."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.raw import decoded

from millstream.landing.decode import pattern_fault
from millstream.model.line_pattern import NAMED, LinePattern

CLASSES = [
    r"\d",
    r"\w",
    r"\S",
    r"\s",
    "[ab]",
    "[^a]",
    r"[-\]x]",
    ".",
    "a",
    "é",
    r"\.",
    '"',
    "(?:ab|b)",
]
TIMES = ["", "", "*", "+", "?", "*?", "+?", "{2}", "{1,2}"]
characters = st.sampled_from('ab12 -."é[]x')


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """Draw a pattern with the groups g0 and g1, and groups without a name."""

    def part(depth: int) -> str:
        if depth and draw(st.booleans()):
            inner = "|".join(part(depth - 1) for _ in range(draw(st.integers(1, 2))))
            return f"({inner}){draw(st.sampled_from([*TIMES[:2], '?']))}"
        return draw(st.sampled_from(CLASSES)) + draw(st.sampled_from(TIMES))

    def parts() -> str:
        return "".join(part(1) for _ in range(draw(st.integers(0, 2))))

    optional = draw(st.sampled_from(["", "?"]))
    return f"{parts()}(?P<g0>{part(1)}){parts()}(?P<g1>{part(0)}){optional}{parts()}"


@given(
    patterns(),
    st.lists(st.text(characters, max_size=9), min_size=1, max_size=12),
    st.sampled_from([("g0", "g1"), ("g1",), ("g1", "g0")]),
)
@settings(max_examples=800)
def test_lines_are_read_as_python_reads_them(
    pattern: str, lines: list[str], names: tuple[str, ...]
) -> None:
    wanted = [re.fullmatch(pattern, line, re.ASCII) for line in lines]

    found = decoded(
        [*lines], ", ".join(f"{name} STRING" for name in names), "text", pattern=pattern
    )

    for line, match, row in zip(lines, wanted, found, strict=True):
        groups = match.groupdict() if match else {}
        assert [row[name] for name in names] == [groups.get(name) or None for name in names]
        assert (row["_reason"] is None) == (match is not None)
        assert (row["_raw"] is None) == (match is not None)
        if match is None and line.strip():
            check_reason(row["_reason"], pattern, line)


def check_reason(reason: str, pattern: str, line: str) -> None:
    """The part that is named is the first at which Python stops to match, too."""
    parts = LinePattern(pattern).parts
    begun = [bool(re.match("".join(parts[:n]), line, re.ASCII)) for n in range(len(parts) + 1)]
    if all(begun):
        assert reason.startswith("the pattern ends before character ")
    else:
        assert f"{parts[begun.index(False) - 1]!r} is expected" in reason


def test_a_reason_says_where_a_line_stops_to_match() -> None:
    pattern = r"(?P<host>\S+) \[(?P<at>[^\]]+)\] (?P<status>\d{3})"
    lines: list[str | bytes | None] = [
        "10.0.0.1 [now] 200",
        "10.0.0.1 [now] 20x",
        "10.0.0.1 (now) 200",
        "10.0.0.1",
        "10.0.0.1 [now] 200 5 ms",
        "",
        b"\xff [now] 200",
        None,
    ]

    found = decoded(lines, "host STRING, at STRING, status INT NOT NULL", "text", pattern=pattern)

    assert [row["_reason"] for row in found] == [
        None,
        r"does not match the pattern: '(?P<status>\\d{3})' is expected at character 16, near '20x'",
        r"does not match the pattern: '\\[' is expected at character 10, near '(now) 200'",
        "does not match the pattern: the line ends where ' ' is expected",
        "the pattern ends before character 19, near ' 5 ms'; add .* to it",
        "empty record",
        "not UTF-8: invalid start byte (byte 0)",
        "null record",
    ]


def test_groups_are_read_by_the_types_and_formats_of_their_columns() -> None:
    pattern = r"(?P<n>\S*)\|(?P<x>\S*)\|(?P<at>\S*)\|(?P<ok>\S*)\|(?P<price>\S*)"
    schema = "n TINYINT NOT NULL, x DOUBLE, `when` TIMESTAMP, ok BOOLEAN, price DECIMAL(5,2)"
    options = {"rename": {"at": "when"}, "formats": {"when": ["epoch_ms", "d.M.yyyy"]}}

    found = decoded(
        [
            "7|1.5|1779112800000|true|1.10",
            "7||1.2.2026||",
            "300|1|0||",
            "|1|0||",
            "7|1|soon||",
            "7|x|0||",
            "7|1|0|yes|",
            "7|1|0||1.234",
        ],
        schema,
        "text",
        pattern=pattern,
        **options,
    )

    names = ("n", "x", "when", "ok", "price")
    assert [tuple(str(row[n]) for n in names) for row in found[:2]] == [
        ("7", "1.5", "2026-05-18 14:00:00+00:00", "True", "1.10"),
        ("7", "None", "2026-02-01 00:00:00+00:00", "None", "None"),
    ]
    assert {row[name] for row in found[2:] for name in names} == {None}
    assert [row["_reason"] for row in found[2:]] == [
        "300 does not fit TINYINT, in column 'n'",
        "missing required value, in column 'n'",
        "expected timestamp as epoch_ms or 'd.M.yyyy', got 'soon', in column 'at'",
        "expected float, got 'x', in column 'x'",
        "expected boolean, got 'yes', in column 'ok'",
        "1.234 does not fit DECIMAL(5,2), in column 'price'",
    ]


def test_a_number_that_must_be_there_is_missed_among_others() -> None:
    found = decoded(["7", "x", ""], "n INT NOT NULL", "text", pattern="(?P<n>[0-9]*).*")

    assert [(row["n"], row["_reason"]) for row in found] == [
        (7, None),
        (None, "missing required value, in column 'n'"),
        (None, "empty record"),
    ]


def test_a_pattern_of_two_that_stand_for_each_other_is_one_part() -> None:
    [row] = decoded(["c"], "x STRING, y STRING", "text", pattern="(?P<x>a+)|(?P<y>b)")

    assert "'(?P<x>a+)|(?P<y>b)' is expected at character 1, near 'c'" in row["_reason"]


@pytest.mark.parametrize("pattern", [r"(?=a)(?P<x>a)", r"(?P<x>a)(?P=x)", r"(?P<x>a++)"])
def test_what_could_take_for_ever_is_refused(pattern: str) -> None:
    assert pattern_fault("".join(LinePattern(pattern).parts)) is not None


def test_a_pattern_that_backtracks_takes_a_time_that_grows_with_the_line_alone() -> None:
    found = decoded(["a" * 100_000 + "!"], "x STRING", "text", pattern=r"(?P<x>(a+)+)b")

    assert found[0]["_reason"].startswith("does not match the pattern: 'b' is expected at")


words = st.text(st.sampled_from("abcXYZ019./_é"), min_size=1, max_size=8)
zones = st.integers(-12 * 4, 14 * 4).map(lambda n: timezone(timedelta(minutes=15 * n)))
moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=zones)  # noqa: DTZ001


requests = st.fixed_dictionaries(
    {
        "host": words,
        "user": st.none() | st.sampled_from(["alice", "a b", "Z-"]),
        "at": moments,
        "method": st.sampled_from(["GET", "POST"]),
        "path": words,
        "status": st.integers(100, 599),
        "size": st.none() | st.integers(0, 2**40),
        "agent": st.text(st.sampled_from('ab "\\é]['), max_size=9),
    }
)


@given(requests)
@settings(max_examples=200)
def test_access_logs_are_read_as_a_server_writes_them(request: dict[str, Any]) -> None:
    host, user, at, size = request["host"], request["user"], request["at"], request["size"]
    method, path, status, agent = (request[n] for n in ("method", "path", "status", "agent"))
    escaped = agent.replace("\\", "\\\\").replace('"', '\\"')
    moment = at.replace(microsecond=0)
    line = (
        f"{host} - {user or '-'} [{moment:%d/%b/%Y:%H:%M:%S %z}] "
        f'"{method} /{path} HTTP/1.1" {status} {"-" if size is None else size} "-" "{escaped}"'
    )

    [row] = decoded([line], NAMED["apache_combined"].schema, "text", pattern="apache_combined")

    assert {name: value for name, value in row.items() if name[0] != "_"} == {
        "host": host,
        "ident": None,
        "user": user,
        "time": moment.astimezone(UTC),
        "method": method,
        "path": f"/{path}",
        "protocol": "HTTP/1.1",
        "request": None,
        "status": status,
        "bytes": size,
        "referer": None,
        "agent": escaped or None,
    }


def test_the_examples_of_the_syslog_rfcs_are_read() -> None:
    old = decoded(
        [
            "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
            "Feb  5 17:32:18 10.0.0.99 sshd[4711]: Accepted publickey",
        ],
        NAMED["syslog_rfc3164"].schema,
        "text",
        pattern="syslog_rfc3164",
    )
    new = decoded(
        [
            "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - 'su root' failed",
            "<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time.",
            "<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 "
            '[exampleSDID@32473 iut="3" eventSource="App\\]"][examplePriority@32473 class="high"]',
            "<165>1 - - - - - -",
        ],
        NAMED["syslog_rfc5424"].schema,
        "text",
        pattern="syslog_rfc5424",
    )

    columns = ("priority", "time", "host", "program", "pid", "message")
    assert [tuple(row[name] for name in columns) for row in old] == [
        (
            34,
            "Oct 11 22:14:15",
            "mymachine",
            "su",
            None,
            "'su root' failed for lonvick on /dev/pts/8",
        ),
        (None, "Feb  5 17:32:18", "10.0.0.99", "sshd", "4711", "Accepted publickey"),
    ]
    assert [(row["time"] and row["time"].isoformat(), row["msgid"]) for row in new] == [
        ("2003-10-11T22:14:15.003000+00:00", "ID47"),
        ("2003-08-24T12:14:15.000003+00:00", None),
        ("2003-10-11T22:14:15.003000+00:00", "ID47"),
        (None, None),
    ]
    assert new[2]["data"].startswith("[exampleSDID@32473 ")
    assert [row["message"] for row in new] == ["'su root' failed", "%% It's time.", None, None]

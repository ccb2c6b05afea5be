"""What `check` refuses of patterns, functions and formats of records, and how it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import millstream as ms

if TYPE_CHECKING:
    from collections.abc import Callable


def faults_of(make: Callable[..., Any], *words: Any, **options: Any) -> list[str]:
    """The code, the fault and the fix of all that is wrong with a source."""
    app = ms.App("shop")
    app.source(name="lines")(lambda: make(*words, **options))
    return [f"{fault.code}: {fault} {fault.fix}" for fault in app.faults]


def parse(records: Any) -> Any:
    return records


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pattern": "(?P<n>x", "format": "text"}, ("LINE_PATTERN", "missing ), unterminated")),
        ({"pattern": "(n)", "format": "text"}, ("LINE_PATTERN", "no named group", "(?P<name>…)")),
        ({"pattern": "syslog", "format": "text"}, ("LINE_PATTERN", "syslog_rfc3164")),
        ({"pattern": "(?P<m>x)", "format": "text"}, ("LINE_PATTERN", "no group for column 'n'")),
        ({"pattern": "(?=x)(?P<n>x)", "format": "text"}, ("LINE_PATTERN", "(?=", "RE2")),
        ({"pattern": "apache_common", "format": "text"}, ("LINE_PATTERN", "host STRING, ident")),
        ({"pattern": "(?P<n>x)"}, ("OPTION_UNUSED", "format='json'", "set format='text'")),
        ({"parse": parse, "format": "csv"}, ("OPTION_UNUSED", "leave format out")),
        ({"parse": parse, "rename": {"a": "n"}}, ("OPTION_UNUSED", "leave rename out")),
        ({"parse": "nowhere:parse"}, ("PARSE_FUNCTION", "No module named 'nowhere'")),
        ({"parse": "json:read"}, ("PARSE_FUNCTION", "no attribute 'read'")),
        ({"parse": lambda: None}, ("PARSE_FUNCTION", "too many positional arguments")),
    ],
)
def test_what_cannot_read_records_is_refused_with_the_reason(
    options: dict[str, Any], words: tuple[str, ...]
) -> None:
    [found] = faults_of(ms.Memory, "n INT", **options)

    assert [word for word in words if word not in found] == []


@pytest.mark.parametrize("name", ["header", "multiline"])
def test_values_of_kafka_have_neither_headers_nor_neighbours(name: str) -> None:
    chosen: dict[str, Any] = {name: True}

    [found] = faults_of(
        ms.Kafka, "orders", schema="n INT", format="csv", csv=ms.CsvOptions(**chosen)
    )

    assert f"csv.{name}=True, which ms.Kafka does not use" in found

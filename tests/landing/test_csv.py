"""CSV as Python's csv module reads it, an independent reader, and where ours is stricter."""

from __future__ import annotations

import csv
import io
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.apps import app_of, rows, run

from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.landing.decode import BLANK, NO_RECORD, csv_record, decoder
from millstream.model.codec import CsvOptions
from millstream.model.schema import Schema
from millstream.systems.files.source import Files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

MULTILINE = CsvOptions(multiline=True)
NAMES = ("a", "b,;|\t'\"", "c")
SCHEMA = Schema.parse("a STRING, `b,;|\t'\"` STRING, c STRING")


def batch(values: list[bytes], origins: str) -> pa.RecordBatch:
    columns: dict[str, Any] = {
        "value": pa.array(values, pa.binary()),
        "_origin": pa.array(list(origins), pa.string()),
        "_position": pa.nulls(len(values), pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


def read(
    text: str | bytes, options: CsvOptions, schema: Schema = SCHEMA, cuts: Sequence[int] = ()
) -> list[dict[str, Any]]:
    """Decode a file that is split at LF, in batches cut anywhere; leave out what is no record."""
    data = text.encode() if isinstance(text, str) else text
    lines = data.split(b"\n")[: -1 if data.endswith(b"\n") else None] if data else []
    whole = batch(lines, "f" * len(lines))
    ends = sorted({0, *(cut % (len(lines) + 1) for cut in cuts), len(lines)})
    batches = [whole.slice(a, b - a) for a, b in pairwise(ends)]
    run = decoder(schema, format="csv", options=options, number_lines=True)
    found = [row for batch in run(iter(batches)) for row in batch.to_pylist()]
    assert [row["_position"] for row in found] == list(range(1, len(lines) + 1))
    return [row for row in found if row["_reason"] != NO_RECORD]


def oracle(text: str, options: CsvOptions) -> list[tuple[int, list[str]]]:
    """Read a file with Python's csv module: each record, and the line where it begins."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(
        lines, delimiter=options.sep, quotechar=options.quote, escapechar=options.escape
    )
    found, begins = [], 0
    for record in reader:
        found.append((text[:begins].count("\n") + 1, record))
        begins = lines.tell()
    return found


cells = st.text(st.sampled_from("ab ,;|\t\"'\\é\n\r"), max_size=6) | st.sampled_from(
    ["", "\r\n", '"', '""', "\n\n", 'say "hi"\r\nx', "NULL"]
)


@st.composite
def files(draw: st.DrawFn) -> tuple[str, CsvOptions]:
    """Draw a right file, as another program might write it."""
    options = CsvOptions(
        sep=draw(st.sampled_from(",;|\t")),
        quote=draw(st.sampled_from("\"'")),
        header=draw(st.booleans()),
        multiline=True,
    )
    special = {options.sep, options.quote, "\r", "\n"}
    end = st.sampled_from(["\n", "\r\n"])

    def written(cell: str) -> str:
        if not special & set(cell) and draw(st.booleans()):
            return cell
        quote = options.quote
        return quote + cell.replace(quote, quote + quote) + quote

    def line(record: Sequence[str]) -> str:
        return options.sep.join(map(written, record)) + draw(end)

    records = draw(st.lists(st.tuples(*[cells] * len(NAMES)), max_size=6))
    header = line(NAMES) if options.header else ""
    body = "".join(
        line(record) + draw(st.sampled_from(["", "", "", "\n", "\r\n"])) for record in records
    )
    text = header + body
    if text.endswith("\n") and draw(st.booleans()):
        text = text.removesuffix("\n").removesuffix("\r")
    return text, options


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files(), st.lists(st.integers(0, 100), max_size=4))
def test_right_files_are_read_as_python_reads_them(
    drawn: tuple[str, CsvOptions], cuts: list[int]
) -> None:
    text, options = drawn

    found = read(text, options, cuts=cuts)

    expected = [
        (line, tuple(cell or None for cell in record) if record else BLANK)
        for line, record in oracle(text, options)[1 if options.header else 0 :]
    ]
    got = [
        (row["_position"], row["_reason"] or tuple(row[name] for name in NAMES)) for row in found
    ]
    assert got == expected


def strictly(text: str) -> list[tuple[int, list[str] | None]]:
    """Read any text by the rules of docs/how-to/sources.md, character by character.

    Give the line where each record begins and its cells; None for each line of what is no record.
    """
    found: list[tuple[int, list[str] | None]] = []
    at, line = 0, 1
    while at < len(text):
        cells, end = one_record(text, at)
        lines = text[at:end].count("\n") + (not text[at:end].endswith("\n"))
        found += [(line, cells)] if cells is not None else [(line + n, None) for n in range(lines)]
        at, line = end, line + lines
    return found


def one_record(text: str, at: int) -> tuple[list[str] | None, int]:
    """Read the record that begins at a character: its cells and its end, past the line end."""
    cells = []
    while True:
        cell = ""
        if text[at : at + 1] == '"':
            at += 1
            while text[at : at + 2] == '""' or text[at : at + 1] not in ('"', ""):
                cell += text[at]
                at += 2 if text[at] == '"' else 1
            if at == len(text):
                return None, at
            at += 1
        else:
            while at < len(text) and text[at] not in ',"\r\n':
                cell += text[at]
                at += 1
        cells.append(cell)
        if text[at : at + 1] == ",":
            at += 1
            continue
        line_end = text.find("\n", at)
        line_end = len(text) if line_end < 0 else line_end
        return (None if text[at:line_end].strip("\r") else cells), line_end + 1


@settings(max_examples=2000, deadline=None)
@given(
    st.text(st.sampled_from('ab,,""\n\n\r'), max_size=40),
    st.lists(st.integers(0, 100), max_size=3),
    st.booleans(),
)
def test_no_row_of_a_damaged_file_is_one_that_nobody_wrote(
    text: str, cuts: list[int], multiline: bool
) -> None:
    schema, options = Schema.parse("a STRING, b STRING"), CsvOptions(multiline=multiline)

    found = read(text, options, schema, cuts)

    alone = text.removesuffix("\n").split("\n") if text else []
    told = (
        strictly(text)
        if multiline
        else [(n, (strictly(line) or [(1, [""])])[0][1]) for n, line in enumerate(alone, 1)]
    )
    expected = [
        (line, tuple(c or None for c in cells) if cells and len(cells) == 2 else None)
        for line, cells in told
    ]
    assert [
        (row["_position"], None if row["_reason"] else (row["a"], row["b"])) for row in found
    ] == expected


def test_a_record_ends_with_its_file() -> None:
    run = decoder(Schema.parse("a INT, b STRING"), format="csv", options=MULTILINE)

    [found] = run(iter([batch([b'1,"x', b'2,y"', b"3,z"], "fgg")]))

    assert found.column("_reason").to_pylist() == [
        "not CSV: the quoted field that line 1 opens is not closed before the end of the file",
        "not CSV: a quote inside an unquoted field, in column 'b'; "
        "quote the field and double the quote",
        None,
    ]


def test_a_record_that_is_broken_lands_line_by_line_and_the_next_is_read() -> None:
    found = read('1,"x\ny,z\n"2\n3,w\n', MULTILINE, Schema.parse("a INT, b STRING"))

    fault = (
        "not CSV: text after a closing quote, in column 'b'; double a quote inside a quoted field, "
        "in the record of lines 1 to 3"
    )
    assert [(row["_raw"], row["_reason"]) for row in found] == [
        *((raw, fault) for raw in (b'1,"x', b"y,z", b'"2')),
        (None, None),
    ]


def test_a_quote_not_closed_within_the_limit_makes_the_rest_of_the_file_malformed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(csv_record, "LIMIT", 2 * 2**20)
    fits = '1,"' + "x\n" * (2**20 - 2) + '"\n'
    too_long = '2,"' + "x\n" * 2**20 + '"\n3,z\n'

    found = read(fits + too_long, MULTILINE, Schema.parse("a INT, b STRING"), (10, 2**20 + 7))

    reason = f"not CSV: the quoted field that line {2**20} opens is not closed within 2 MiB"
    assert (found[0]["a"], found[0]["b"]) == (1, "x\n" * (2**20 - 2))
    assert {row["_reason"] for row in found[1:]} == {reason}
    assert len(found) == 1 + 2**20 + 2


def test_lines_of_other_bytes_than_utf_8_are_one_malformed_record() -> None:
    raw = b'1,"\xff\nx"'

    [bad, good] = read(raw + b"\n2,y\n", MULTILINE, Schema.parse("a INT, b STRING"))

    assert (bad["_raw"], bad["_reason"]) == (raw, "not UTF-8: invalid start byte (byte 3)")
    assert good["a"] == 2


def test_an_escaped_quote_does_not_close_a_field() -> None:
    options = CsvOptions(escape="\\", multiline=True)

    found = read(
        '1,"a\\"\nb"\n2,"c\\\n"\n3,"d"\n4,e\\"f\n', options, Schema.parse("a INT, b STRING")
    )

    assert [(r["a"], r["b"]) for r in found] == [(1, 'a"\nb'), (2, "c\n"), (3, "d"), (4, 'e"f')]


def test_without_quoting_a_quote_is_a_character() -> None:
    options = CsvOptions(sep="\t", quote="", multiline=True)

    found = read('1\t5" pipe\n2\t"x\n', options, Schema.parse("a INT, b STRING"))

    assert [(row["a"], row["b"]) for row in found] == [(1, '5" pipe'), (2, '"x')]


def test_a_value_that_is_no_line_of_a_file_may_contain_newlines() -> None:
    run = decoder(Schema.parse("a INT, b STRING"), format="csv")

    [found] = run(iter([batch([b'1,"x\r\ny"', b'2,"z'], "tt")]))

    assert found.column("b").to_pylist() == ["x\r\ny", None]
    assert found.column("_reason")[1].as_py() == (
        "not CSV: a quoted field is not closed, in column 'b'"
    )


@pytest.mark.spark
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(drawn=st.lists(files(), min_size=1, max_size=4), bom=st.booleans())
def test_right_files_land_as_python_reads_them(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[str, CsvOptions]],
    bom: bool,
) -> None:
    folder, home = tmp_path_factory.mktemp("in"), tmp_path_factory.mktemp("home")
    options, expected, blank = drawn[0][1], [], 0
    for n, text in enumerate(text for text, own in drawn if own == options):
        file = folder / f"{n}.csv"
        file.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode())
        records = oracle(text, options)[1 if options.header else 0 :]
        blank += sum(not record for _, record in records)
        expected += [
            (str(file), line, *(cell or None for cell in record))
            for line, record in records
            if record
        ]

    run(app_of(Files(str(folder), "csv", SCHEMA.to_ddl(), options)), home)

    [entry] = read_ledger(Home.at(home)).sources
    assert (entry.input, entry.blank) == (len(expected) + blank, blank)
    assert entry.is_balanced
    landed = rows(home, "readings", "_origin", "_position", *NAMES) if expected else []
    assert landed == sorted(expected, key=str)

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from tests.apps import rows, run
from tests.raw import raw

import millstream as ms
from millstream.cli.sample_code import to_code
from millstream.landing.land import Landing
from millstream.views.sample_input import propose

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from tests.cli.conftest import Outcome

    from millstream.testing.kafka import Broker, Topics

NOON = datetime(2026, 5, 5, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)
CLOCKS: dict[str, Callable[[datetime], Any]] = {
    "iso": lambda t: t.isoformat(),
    "british": lambda t: f"{t:%d/%m/%Y %H:%M}",
    "american": lambda t: f"{t:%m/%d/%Y %I:%M:%S %p}",
    "german": lambda t: f"{t:%d.%m.%Y %H:%M:%S}",
    "short": lambda t: f"{t.day}/{t.month}/{t.year} {t.hour}:{t:%M}",
    "logging": lambda t: f"{t:%Y-%m-%d %H:%M:%S},{t.microsecond // 1000:03d}",
    "mail": lambda t: f"{t:%a, %d %b %Y %H:%M:%S %z}",
    "apache": lambda t: f"{t:%d/%b/%Y:%H:%M:%S %z}",
    "s": lambda t: int(t.timestamp()),
    "ms": lambda t: int(t.timestamp() * 1000),
    "us": lambda t: int(t.timestamp() * 10**6),
    "ns": lambda t: int(t.timestamp()) * 10**9,
    "text ms": lambda t: str(int(t.timestamp() * 1000)),
    "text ns": lambda t: str(int(t.timestamp()) * 10**9),
    "fraction": lambda t: int(t.timestamp()) + 0.25,
}
TRUNCATED = {"british": "minute", "short": "minute"}


def source_of(code: str) -> tuple[str, Any]:
    """Paste code into a module; return the name and the declaration of its source."""
    names: dict[str, Any] = {"__name__": "pasted"}
    exec(compile(code, "pasted.py", "exec"), names)
    app = names["app"]
    assert [fault for fault in app.faults if fault.code != "PATH_MISSING"] == []
    [source] = app.graph.sources
    return source.name, source


def decoded(source: Any, files: list[list[str]]) -> list[dict[str, Any]]:
    """Decode lines as landing does, without Spark."""
    lines = [line for file in files for line in file]
    batch = raw(lines, [str(n) for n, file in enumerate(files) for _ in file])
    run = Landing.of(source).decode()
    return [row for out in run(iter([batch])) for row in out.to_pylist()]


def shares(source: Any, files: list[list[str]]) -> tuple[int, int]:
    reasons = [row["_reason"] for row in decoded(source, files)]
    kept = [reason for reason in reasons if reason != "no_record"]
    return kept.count(None), len(kept)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[str, str, list[str], list[datetime]]:
    """Draw records of a shape: its name, how times are written, lines, and the times."""
    shape = draw(st.sampled_from(["json", "csv", "logfmt", "apache", "syslog_rfc5424"]))
    clock = draw(st.sampled_from([*CLOCKS]))
    days = draw(st.lists(st.integers(0, 700), min_size=3, max_size=12))
    times = [NOON - timedelta(days=day, seconds=day * 61) for day in days]
    name = draw(st.sampled_from(["at", "created_at", "@timestamp", "ts"]))
    written = CLOCKS[clock]
    words = st.sampled_from(["a", "b c", "x,y", 'say "hi"', "é", "", "007", "1.5"])
    records = [
        {name: written(t), "n": draw(st.integers(-9, 9)), "word": draw(words)} for t in times
    ]
    match shape:
        case "json":
            return shape, clock, [json.dumps(record) for record in records], times
        case "csv":
            out = io.StringIO()
            writer = csv.writer(out, delimiter=draw(st.sampled_from(",;\t|")))
            writer.writerow([name, "n", "word"])
            writer.writerows(record.values() for record in records)
            return shape, clock, out.getvalue().split("\r\n")[:-1], times
        case "logfmt":
            quoted = [
                " ".join(f"{k}={json.dumps(str(v))}" for k, v in record.items())
                for record in records
            ]
            return shape, clock, quoted, times
        case "apache":
            lines = [f'h - - [{CLOCKS["apache"](t)}] "GET / HTTP/1.1" 200 -' for t in times]
            return shape, "apache", lines, times
    return shape, "iso", [f"<1>1 {t.isoformat()} h app - - - m" for t in times], times


@given(shapes(), st.sampled_from([None, "{", "?? !!", '"']))
@settings(max_examples=120)
def test_the_code_for_a_shape_loads_fits_as_said_and_reads_its_times(
    tmp_path_factory: pytest.TempPathFactory,
    shape: tuple[str, str, list[str], list[datetime]],
    stray: str | None,
) -> None:
    form, clock, lines, times = shape
    file = tmp_path_factory.mktemp("shape") / "records.log"
    all_lines = [*lines, *([stray] if stray else [])]
    file.write_text("".join(f"{line}\n" for line in all_lines))

    sampled = propose(str(file), 1000)
    _, source = source_of(to_code(sampled))

    proposal = sampled.proposal
    assert shares(source, [all_lines]) == (proposal.fits, proposal.sampled)
    if stray is None:
        assert proposal.fits == proposal.sampled == len(times)
        assert proposal.format == {"apache": "text", "syslog_rfc5424": "text"}.get(form, form)
        read = [row[source.event_time] for row in decoded(source, [lines]) if row["_origin"]]
        read = read[1:] if form == "csv" else read
        if not any(proposal.notes):
            assert read == [cut(t, clock) for t in times]


def cut(time: datetime, clock: str) -> datetime:
    if clock == "fraction":
        return time.replace(microsecond=250_000)
    return time.replace(second=0) if clock in TRUNCATED else time


def folder_of(tmp_path: Path) -> dict[str, Path]:
    """Write records of every shape: the name of a source -> its file."""
    times = [NOON + timedelta(seconds=n) for n in range(3)]
    texts = {
        "nested.json": [
            json.dumps({"id": n, "@timestamp": t.isoformat(), "who": {"age": n, "tags": ["a"]}})
            for n, t in enumerate(times)
        ],
        "epoch.json": [
            json.dumps({"key": f"k{n}", "ts": NOON_MS + n, "price": 1.5 if n else 2})
            for n in range(3)
        ],
        "pretty.json": json.dumps(
            [{"id": n, "at": t.isoformat()} for n, t in enumerate(times)], indent=2
        ).split("\n"),
        "header.csv": ["Order ID;at;price"]
        + [f"{n};{t:%d/%m/%Y %H:%M};{n}.5" for n, t in enumerate(times, 13)],
        "newlines.csv": ["id,note", '1,"first', '2,second"', "3,third", '4,"a', "", 'b"'],
        "nulls.csv": ["id,size", "1,NULL", "2,5", "3,NULL"],
        "bare.csv": [f"{n},word {n}" for n in range(3)],
        "access.log": [
            f'10.0.0.{n} - - [{t:%d/%b/%Y:%H:%M:%S %z}] "GET / HTTP/1.1" 200 {n} "-" "x"'
            for n, t in enumerate(times)
        ],
        "old.syslog": [f"<34>May  5 12:00:0{n} host su[{n}]: message" for n in range(3)]
        + ["not one"],
        "app.logfmt": [f'at={t.isoformat()} level=info msg="a {n}"' for n, t in enumerate(times)],
        "plain.txt": ["one line", "another", "the third"],
    }
    found = {}
    for name, lines in texts.items():
        found[name] = tmp_path / Path(name).stem / name
        found[name].parent.mkdir()
        found[name].write_text("".join(f"{line}\n" for line in lines))
    for name in ("typed.parquet", "kept.avro"):
        found[name] = tmp_path / Path(name).stem / name
        found[name].parent.mkdir()
    pq.write_table(
        pa.table({"id": pa.array(range(3), pa.int32()), "at": pa.array(times)}),
        found["typed.parquet"],
    )
    fields = [
        {"name": "id", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": ["null", {"type": "array", "items": "string"}]},
    ]
    avro = fastavro.parse_schema({"type": "record", "name": "Row", "fields": fields})
    with found["kept.avro"].open("wb") as out:
        rows_of = [{"id": n, "at": t, "tags": ["a"] if n else None} for n, t in enumerate(times)]
        fastavro.writer(out, avro, rows_of)
    return found


EVENT_TIMES: dict[str, Any] = {
    "nested.json": "timestamp",
    "epoch.json": "ts",
    "pretty.json": "at",
    "header.csv": "at",
    "newlines.csv": None,
    "nulls.csv": None,
    "bare.csv": None,
    "access.log": "time",
    "old.syslog": {
        "at": "to_timestamp(concat('2026 ', regexp_replace(time, ' +', ' ')), "
        "'yyyy MMM d HH:mm:ss')"
    },
    "app.logfmt": "at",
    "plain.txt": None,
    "typed.parquet": "at",
    "kept.avro": "at",
}


@pytest.mark.spark
def test_what_is_pasted_lands_as_many_right_rows_as_said(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    found = {name: propose(str(file.parent), 1000) for name, file in folder_of(tmp_path).items()}
    topics.create("sampled")
    topics.send("sampled", *(f'{{"id": {n}, "ts": "{NOON_MS + n}"}}' for n in range(3)), "{")
    found["topic"] = propose(f"kafka:{broker.servers}/sampled", 1000)
    app = ms.App("pasted")
    for name, sampled in found.items():
        _, source = source_of(to_code(sampled))
        times = sampled.proposal
        options: Any = {"event_time": times.event_time, "watermark": times.watermark}
        app.source(name=name.replace(".", "_"), **options)(pasted(source.connector))

    run(app, tmp_path / "home")

    shown = {name: sampled.proposal for name, sampled in found.items()}
    assert {name: p.event_time for name, p in shown.items() if name != "topic"} == EVENT_TIMES
    for name, proposal in shown.items():
        landed = rows(tmp_path / "home", name.replace(".", "_"), "_verdict")
        verdicts = Counter(verdict for (verdict,) in landed)
        assert (verdicts["ok"], verdicts.total()) == (proposal.fits, proposal.sampled), name
    assert shown["pretty.json"].document
    assert shown["newlines.csv"].csv == ms.CsvOptions(header=True, multiline=True)
    assert (shown["nulls.csv"].csv, shown["nulls.csv"].columns["size"]) == (
        ms.CsvOptions(header=True, null_value="NULL"),
        "BIGINT",
    )
    assert shown["old.syslog"].fits == 3
    assert shown["topic"].formats == {"ts": ("epoch_ms",)}


def pasted(connector: Any) -> Callable[[], Any]:
    return lambda: connector


def test_the_proposal_is_code_that_a_person_would_paste(
    millstream: Callable[..., Outcome], tmp_path: Path
) -> None:
    orders = tmp_path / "orders.json"
    orders.write_text(
        '{"id": 1, "at": "03/04/2026 10:00", "user-agent": "x"}\n'
        '{"id": 2, "at": "03/04/2026 10:01", "user-agent": "x"}\n'
        '{"id": 3, "at":\n'
    )

    outcome = millstream("sample", str(orders))

    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "import millstream as ms",
        "",
        'app = ms.App("orders")',
        "",
        "",
        "# 2 of 3 sampled records fit (66.7%)",
        "# one that does not: not JSON: input data was truncated",
        "# different in each: id",
        "# at could also be MM/dd/yyyy HH:mm",
        '@app.source(event_time="at", watermark="10 minutes")',
        "def orders() -> ms.Files:",
        "    return ms.Files(",
        f'        "{tmp_path}/*.json",',
        '        format="json",',
        '        schema="id BIGINT, at TIMESTAMP, user_agent STRING",',
        '        rename={"user-agent": "user_agent"},',
        '        formats={"at": "dd/MM/yyyy HH:mm"},',
        "    )",
    ]


def test_several_files_of_a_folder_are_looked_at(tmp_path: Path) -> None:
    for n, size in enumerate(["1", "2.5", "3"]):
        (tmp_path / f"{n}.csv").write_text(f"id,size\n{n},{size}\n")

    proposal = propose(str(tmp_path), 1000).proposal

    assert (proposal.columns, proposal.sampled, proposal.fits) == (
        {"id": "BIGINT", "size": "DOUBLE"},
        3,
        3,
    )


@pytest.mark.parametrize("path", ["nowhere/*.json", "kafka:topic"])
def test_a_path_without_records_is_refused(millstream: Callable[..., Outcome], path: str) -> None:
    outcome = millstream("sample", path)

    assert (outcome.code, outcome.refusal[0].split("]")[0]) == (2, "[ARGUMENT_REFUSED")

"""A source proposed for records that are text: JSON, logs, key=value pairs, CSV, or plain lines."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from millstream.landing.decode import BLANK, NO_RECORD, decoder, logfmt_pairs
from millstream.landing.proposal.column_type import common_type, typed
from millstream.landing.proposal.csv_dialect import dialect_of
from millstream.landing.proposal.proposal import Proposal, renamed
from millstream.landing.proposal.times import event_time, written_times
from millstream.model.data_type import type_ddl
from millstream.model.line_pattern import NAMED, LinePattern
from millstream.model.record import RecordOptions
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.model.codec import CsvOptions

    Files = Sequence[Sequence[str]]

_YEARLESS = re.compile(r"[A-Z][a-z]{2} [ \d]\d ")


def propose_lines(files: Files, *, may_be_csv: bool = True) -> Proposal:
    """Propose a source of records that are a line each, from the first lines of some files."""
    kept = [[line for line in file if line.strip()] for file in files]
    lines = [line for file in kept for line in file]
    objects = [found for line in lines if (found := _object(line)) is not None]
    if len(objects) * 2 > len(lines):
        return _proposed("json", objects, kept)
    if (known := _known_pattern(lines)) is not None:
        return _of_pattern(known, kept)
    pairs = [found for line in lines if (found := _pairs(line)) is not None]
    if len(pairs) * 2 > len(lines):
        return _proposed("logfmt", pairs, kept)
    if not may_be_csv or (dialect := dialect_of(kept)) is None:
        columns = {"value": "STRING"}
        return Proposal(format="text", columns=columns, sampled=len(lines), fits=len(lines))
    null = dialect.options.null_value
    values = [
        {n: None if cell == null else typed(cell) for n, cell in zip(names, row, strict=True)}
        for names, row in ((dialect.names, row) for row in dialect.rows)
    ]
    return _proposed("csv", values, kept, csv=dialect.options)


def propose_document(text: bytes) -> Proposal | None:
    """Propose a source of JSON files that are one document each; None if this is none."""
    try:
        found = json.loads(text)
        raws = msgspec.json.decode(text, type=list[msgspec.Raw]) if isinstance(found, list) else []
    except (ValueError, RecursionError):
        return None
    objects = [
        each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict)
    ]
    records = [bytes(raw).decode() for raw in raws] if isinstance(found, list) else [text.decode()]
    if not objects or len(objects) * 2 <= len(records):
        return None
    return _proposed("json", objects, [records], document=True)


def _proposed(
    form: str,
    objects: Sequence[Mapping[str, Any]],
    files: Files,
    *,
    csv: CsvOptions | None = None,
    document: bool = False,
) -> Proposal:
    names = list(dict.fromkeys(name for record in objects for name in record))
    rename = renamed(names)
    values = [{rename.get(n, n): v for n, v in record.items()} for record in objects]
    columns, formats, notes = dict[str, str](), dict[str, tuple[str, ...]](), list[str]()
    for name in (rename.get(n, n) for n in names):
        there = [record.get(name) for record in values]
        columns[name] = common_type(there)
        if (written := written_times(name, columns[name], there)) is not None:
            columns[name], formats[name] = written.kind, written.formats
            notes += (f"{name} could also be {other}" for other in written.others)
    chosen, watermark = event_time(columns, formats, values)
    proposal = Proposal(
        format=form,
        columns=columns,
        sampled=0,
        fits=0,
        document=document,
        csv=csv,
        rename=rename,
        formats=formats,
        event_time=chosen,
        watermark=watermark,
        keys=keys_of(columns, values),
        notes=tuple(notes),
    )
    return _judged(proposal, files)


def _known_pattern(lines: Sequence[str]) -> str | None:
    """Find the known pattern that most lines match; of equal ones, that with more columns."""
    matches = {
        name: sum(re.fullmatch(named.text, line, re.ASCII) is not None for line in lines)
        for name, named in NAMED.items()
    }
    best = max(NAMED, key=lambda name: (matches[name], len(LinePattern(name).names)))
    return best if matches[best] * 2 > len(lines) else None


def _of_pattern(name: str, files: Files) -> Proposal:
    named = NAMED[name]
    found = (re.fullmatch(named.text, line, re.ASCII) for file in files for line in file)
    values = [match.groupdict() for match in found if match]
    columns = {
        field.name: type_ddl(field.type)
        for field in Schema.parse(named.schema).fields
        if any(record[field.name] for record in values)
    }
    formats = {n: (f,) for n, f in named.formats.items() if n in columns}
    is_yearless = any(_YEARLESS.match(record["time"] or "") for record in values)
    if columns.get("time") == "STRING" and not is_yearless:
        columns["time"] = "TIMESTAMP"
    chosen, watermark = event_time(columns, formats, values)
    notes: tuple[str, ...] = ()
    if is_yearless:
        year = _year_of([record["time"] for record in values])
        text = f"concat('{year} ', regexp_replace(time, ' +', ' '))"
        chosen, watermark = {"at": f"to_timestamp({text}, 'yyyy MMM d HH:mm:ss')"}, "10 minutes"
        notes = (f"times have no year: {year} is assumed",)
    proposal = Proposal(
        format="text",
        columns=columns,
        sampled=0,
        fits=0,
        pattern=name,
        event_time=chosen,
        watermark=watermark,
        notes=notes,
    )
    return _judged(proposal, files)


def _year_of(times: Sequence[str]) -> int:
    """Return the last year in which none of these times is to come."""
    now = datetime.now(UTC)
    try:
        moments = [
            datetime.strptime(f"{now.year} {t} +0000", "%Y %b %d %H:%M:%S %z") for t in times
        ]
    except ValueError:
        return now.year
    return now.year - (max(moments) > now + timedelta(hours=14))


def _judged(proposal: Proposal, files: Files) -> Proposal:
    """Count what fits, by the decoder that lands the rows."""
    run = decoder(
        Schema.parse(proposal.schema),
        format=proposal.format,  # type: ignore[arg-type]
        options=proposal.csv,
        record=RecordOptions(
            rename=proposal.rename, formats=proposal.formats, pattern=proposal.pattern
        ),
        number_lines=True,
    )
    lines = [line.encode(errors="surrogateescape") for file in files for line in file]
    raw = pa.RecordBatch.from_pydict(
        {
            "value": pa.array(lines, pa.binary()),
            "_origin": pa.array(
                [str(n) for n, file in enumerate(files) for _ in file], pa.string()
            ),
            "_position": pa.nulls(len(lines), pa.int64()),
        }
    )
    reasons = (row["_reason"] for out in run(iter([raw])) for row in out.to_pylist())
    found = [reason for reason in reasons if reason not in (NO_RECORD, BLANK)]
    wrong = [reason for reason in found if reason is not None]
    frequent = sorted(set(wrong), key=lambda reason: (-wrong.count(reason), reason))
    return replace(
        proposal, sampled=len(found), fits=len(found) - len(wrong), reasons=tuple(frequent)
    )


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _pairs(line: str) -> dict[str, Any] | None:
    """Read a line of key=value pairs; None if it is none, or has one pair only."""
    try:
        pairs = logfmt_pairs(line)
    except ValueError:
        return None
    return {key: typed(value) for key, value in pairs.items()} if len(pairs) > 1 else None


def keys_of(columns: Mapping[str, str], values: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the columns whose values are all there and all different."""
    simple = [name for name, kind in columns.items() if kind in ("BIGINT", "STRING")]
    return tuple(
        name
        for name in simple
        if len({str(record.get(name)) for record in values if record.get(name) is not None})
        == len(values)
    )

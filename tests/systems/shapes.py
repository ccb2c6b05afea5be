"""Records of every usual shape, in every format, from files and from Kafka: read, or refused.

`python -m tests.systems.shapes --document docs/how-to/records.md` writes the table of the page.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import tempfile
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from tests.apps import run
from tests.avro import written
from tests.document import table, write_between_marks

import millstream as ms
from millstream.errors import MillstreamError
from millstream.landing.land import Landing
from millstream.spark.session import open_session, stop_session
from millstream.testing.kafka import Broker, Topics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

FORMATS = ("json", "csv", "text", "parquet", "avro")
PLACES = ("files", "kafka")
MARK = "shapes"
NOON = datetime(2026, 11, 18, 14, 7, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)
TYPED = ("parquet", "avro")


@dataclass(frozen=True, eq=False)
class Shape:
    """One way in which other people write a value, and what should become of it."""

    name: str
    shown: str
    type: str
    expected: Any
    value: Any
    """As JSON has it."""
    typed: Any = None
    """As Parquet and Avro have it, if they have it in another way."""
    avro: Any = "string"
    options: Mapping[str, Any] = field(default_factory=dict)
    as_typed: str = ""
    """What is declared instead where records have types of their own."""
    event_time: str = ""
    """The expression that gives the time where formats cannot."""


SHAPES = (
    Shape(
        "ISO time",
        "`2026-11-18T14:07:00Z`",
        "TIMESTAMP",
        NOON,
        "2026-11-18T14:07:00Z",
        NOON,
        {"type": "long", "logicalType": "timestamp-micros"},
    ),
    Shape(
        "time in another format",
        "`18/11/2026 14:07`",
        "TIMESTAMP",
        NOON,
        "18/11/2026 14:07",
        options={"formats": "dd/MM/yyyy HH:mm"},
        as_typed="STRING",
        event_time="to_timestamp({}, 'dd/MM/yyyy HH:mm')",
    ),
    Shape(
        "milliseconds since 1970",
        f"`{NOON_MS}`",
        "TIMESTAMP",
        NOON,
        NOON_MS,
        avro="long",
        options={"formats": "epoch_ms"},
        as_typed="BIGINT",
        event_time="timestamp_millis({})",
    ),
    Shape(
        "milliseconds as text",
        f'`"{NOON_MS}"`',
        "TIMESTAMP",
        NOON,
        str(NOON_MS),
        options={"formats": "epoch_ms"},
        as_typed="STRING",
        event_time="timestamp_millis(CAST({} AS BIGINT))",
    ),
    Shape(
        "date",
        "`2026-11-18`",
        "DATE",
        date(2026, 11, 18),
        "2026-11-18",
        date(2026, 11, 18),
        {"type": "int", "logicalType": "date"},
    ),
    Shape(
        "exact amount",
        "`1234567890.10`",
        "DECIMAL(12,2)",
        Decimal("1234567890.10"),
        "1234567890.10",
        Decimal("1234567890.10"),
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    ),
    Shape("great number", "`9007199254740993`", "BIGINT", 2**53 + 1, 2**53 + 1, avro="long"),
    Shape("boolean", "`true`", "BOOLEAN", True, True, avro="boolean"),
    Shape("missing value", "no value", "STRING", None, None, avro=["null", "string"]),
    Shape("quotes, separators", '`say "hi", ok`', "STRING", 'say "hi", ok', 'say "hi", ok'),
    Shape(
        "bytes",
        "`/wA=` (base64)",
        "BINARY",
        b"\xff\x00",
        b64encode(b"\xff\x00").decode(),
        b"\xff\x00",
        "bytes",
    ),
    Shape(
        "field of another name",
        '`"user-agent"`',
        "STRING",
        "curl",
        "curl",
        options={"rename": "user-agent"},
    ),
    Shape(
        "record in a record",
        '`{"a": 1}`',
        "STRUCT<a: INT>",
        {"a": 1},
        {"a": 1},
        avro={"type": "record", "name": "Inner", "fields": [{"name": "a", "type": "int"}]},
    ),
    Shape(
        "list",
        "`[1, 2]`",
        "ARRAY<INT>",
        [1, 2],
        [1, 2],
        avro={"type": "array", "items": "int"},
    ),
    Shape(
        "map",
        '`{"x": 1}`',
        "MAP<STRING, INT>",
        [("x", 1)],
        {"x": 1},
        avro={"type": "map", "values": "int"},
    ),
)


@dataclass(frozen=True)
class Cell:
    """A shape in a format, from a place."""

    shape: Shape
    form: str
    place: str

    @property
    def column(self) -> str:
        return f"c{SHAPES.index(self.shape)}"

    @property
    def field(self) -> str:
        """The name in a record; groups of a pattern and fields of Avro must be plain names."""
        if "rename" not in self.shape.options:
            return self.column
        return "user_agent" if self.form in ("text", "avro") else "user-agent"

    @property
    def is_computed(self) -> bool:
        """Whether the type that the record has is declared, and the time computed from it."""
        return self.form in TYPED and bool(self.shape.as_typed)

    @property
    def type(self) -> str:
        return self.shape.as_typed if self.is_computed else self.shape.type

    @property
    def value(self) -> Any:
        typed = self.shape.typed if self.form in TYPED else None
        return self.shape.value if typed is None else typed

    @property
    def expected(self) -> Any:
        return self.shape.value if self.is_computed else self.shape.expected

    def options(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if "rename" in self.shape.options:
            found["rename"] = {self.field: self.column}
        if "formats" in self.shape.options and not self.is_computed:
            found["formats"] = {self.column: self.shape.options["formats"]}
        return found


def connector(cells: Sequence[Cell], folder: Path, servers: str) -> Any:
    """A source of records that have the shapes of some cells, all of one format and place."""
    form, place = cells[0].form, cells[0].place
    options: dict[str, Any] = {"rename": {}, "formats": {}}
    for cell in cells:
        for name, value in cell.options().items():
            options[name] |= value
    options["schema"] = ", ".join(f"{cell.column} {cell.type}" for cell in cells)
    if form == "text":
        options["pattern"] = r"\|".join(rf"(?P<{cell.field}>[^|]*)" for cell in cells)
    if place == "files":
        return ms.Files(str(folder / form), format=form, **options)
    if form == "avro":
        options["avro"] = ms.AvroOptions(writer=json.dumps(avro_schema(cells)))
    return ms.Kafka(f"shapes-{form}", servers, format=form, **options)


def avro_schema(cells: Sequence[Cell]) -> dict[str, Any]:
    parts = [{"name": cell.field, "type": cell.shape.avro} for cell in cells]
    return {"type": "record", "name": "Row", "fields": parts}


def records(cells: Sequence[Cell]) -> bytes:
    """One record with the values of some cells, as other programs write it."""
    values = {cell.field: cell.value for cell in cells}
    match cells[0].form:
        case "json":
            return json.dumps({k: v for k, v in values.items() if v is not None}).encode()
        case "csv":
            out = io.StringIO()
            csv.writer(out, lineterminator="").writerow(map(_cell, values.values()))
            return out.getvalue().encode()
        case "text":
            return "|".join(map(_cell, values.values())).encode()
    [record] = written(avro_schema(cells), values)
    return record


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, bool | dict | list) else str(value)


def put(cells: Sequence[Cell], folder: Path, topics: Topics) -> None:
    """Write a file, or send a record."""
    form = cells[0].form
    if cells[0].place == "kafka":
        topics.send(f"shapes-{form}", records(cells))
        return
    file = folder / form / f"a.{form}"
    values = {cell.field: cell.value for cell in cells}
    match form:
        case "parquet":
            columns = {name: pa.array([value], _arrow(value)) for name, value in values.items()}
            for cell in cells:
                if cell.shape.type.startswith("MAP"):
                    kind = pa.map_(pa.string(), pa.int32())
                    columns[cell.field] = pa.array([list(cell.value.items())], kind)
            pq.write_table(pa.table(columns), file)
        case "avro":
            with file.open("wb") as out:
                fastavro.writer(out, fastavro.parse_schema(avro_schema(cells)), [values])
        case _:
            file.write_bytes(records(cells) + b"\n")


def _arrow(value: Any) -> Any:
    if isinstance(value, dict):
        return pa.struct([pa.field("a", pa.int32())])
    if isinstance(value, list):
        return pa.list_(pa.int32())
    return pa.string() if value is None else None


def refusal(cell: Cell, folder: Path, servers: str) -> MillstreamError | None:
    """Say what `millstream check` refuses of a cell alone."""
    app = ms.App("shapes")
    app.source(name="rows")(lambda: connector([cell], folder, servers))
    for fault in app.faults:
        return fault
    try:
        Landing.of(app.graph.sources[0]).decode()
    except MillstreamError as error:
        return error
    return None


def outcomes(spark: SparkSession, servers: str, folder: Path) -> dict[Cell, str]:
    """Land all shapes, those of one format and place as columns of one source, in one run."""
    topics, app = Topics(spark, servers), ms.App("shapes")
    found: dict[Cell, str] = {}
    read: dict[str, list[Cell]] = {}
    for form in FORMATS:
        (folder / form).mkdir()
        for place in PLACES:
            cells = [Cell(shape, form, place) for shape in SHAPES]
            refused = {cell: refusal(cell, folder, servers) for cell in cells}
            found |= {cell: f"`{error.code}`" for cell, error in refused.items() if error}
            if kept := [cell for cell in cells if cell not in found]:
                read[f"{form}_{place}"] = kept
    for name, cells in read.items():
        if cells[0].place == "kafka":
            topics.create(f"shapes-{cells[0].form}")
        put(cells, folder, topics)
        declare(app, name, cells, connector(cells, folder, servers))
    run(app, folder / "home")
    for name, cells in read.items():
        found |= landed(folder / "home" / "tables" / name, cells)
    return found


def declare(app: ms.App, name: str, cells: Sequence[Cell], source: Any) -> None:
    """Declare a source; its event time is the one that each computed time should be equal to."""
    computed = [c.shape.event_time.format(c.column) for c in cells if c.is_computed]
    if not computed:
        app.source(name=name)(lambda: source)
        return
    same = " AND ".join(f"{each} = {computed[0]}" for each in computed)
    time = f"CASE WHEN {same} THEN {computed[0]} END"
    app.source(name=name, event_time={"time": time}, watermark="1 day", future="3650 days")(
        lambda: source
    )


def landed(place: Path, cells: Sequence[Cell]) -> dict[Cell, str]:
    """Compare what landed with what was written."""
    [row] = DeltaTable(str(place)).to_pyarrow_table().to_pylist()
    if row["_verdict"] != "ok":
        return dict.fromkeys(cells, f"WRONG: {row['_reason']}")
    times = row.get("time", NOON)
    return {
        cell: how(cell)
        if row[cell.column] == cell.expected and (not cell.is_computed or times == NOON)
        else f"WRONG: {row[cell.column]!r}"
        for cell in cells
    }


def how(cell: Cell) -> str:
    """Say how a shape is declared."""
    if cell.is_computed:
        return f"{cell.type}, `event_time=`"
    option = next((f"`{name}=`" for name in cell.options()), "")
    return "read" + (f", {option}" if option else "")


def as_table(found: Mapping[Cell, str]) -> str:
    """Write what was found as a table, a column for each format."""
    lines = []
    for shape in SHAPES:
        line = [f"{shape.name}: {shape.shown}"]
        for form in FORMATS:
            files, kafka = (found[Cell(shape, form, place)] for place in PLACES)
            line.append(files if files == kafka else f"{files}; Kafka: {kafka}")
        lines.append(line)
    return "\n".join(table(["record", "JSON", "CSV", "text, `pattern=`", "Parquet", "Avro"], lines))


def fixes(found: Mapping[Cell, str], folder: Path, servers: str) -> str:
    """List what is refused, with the fix that `check` gives."""
    said: dict[str, str] = {}
    for cell, outcome in found.items():
        if (code := re.fullmatch(r"`([A-Z_]+)`", outcome)) and code[1] not in said:
            error = refusal(cell, folder, servers)
            assert error is not None
            said[code[1]] = error.fix
    return "\n".join(f"- `{code}`: {fix}" for code, fix in said.items())


def page_text(spark: SparkSession, servers: str, folder: Path) -> str:
    found = outcomes(spark, servers, folder)
    return (
        f"{as_table(found)}\n\nRefused by `check`, with the fix:\n\n{fixes(found, folder, servers)}"
    )


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--document", type=Path, required=True)
    document: Path = words.parse_args().document
    with tempfile.TemporaryDirectory(prefix="millstream-shapes-") as place, Broker() as broker:
        spark = open_session("shapes", master="local[2]", log_dir=Path(place))
        try:
            text = page_text(spark, broker.servers, Path(place))
        finally:
            stop_session(spark)
    write_between_marks(document, MARK, text)


if __name__ == "__main__":
    main()

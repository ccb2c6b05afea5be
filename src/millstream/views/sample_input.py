"""Some records of files or of a topic that nobody has described yet, and how they can be read."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.landing.proposal import propose_document, propose_lines, propose_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from millstream.landing.proposal import Proposal

_FILES = 20
"""How many files of a folder are looked at."""
_GREATEST_DOCUMENT = 64 * 2**20
_TOPIC = "kafka:"


@dataclass(frozen=True, slots=True)
class SampledSource:
    """Where records are, and how they can be read."""

    name: str
    """Of the file, folder or topic."""
    connector: str
    """Files or Kafka."""
    place: str
    """A path, or a topic."""
    servers: str
    proposal: Proposal


def propose(path: str, records: int) -> SampledSource:
    """Look at the first records of files, or of a topic as `kafka:HOST:PORT/TOPIC`.

    Raises:
        ARGUMENT_REFUSED: There is nothing to look at.
    """
    if path.startswith(_TOPIC):
        servers, _, topic = path.removeprefix(_TOPIC).rpartition("/")
        return _of_topic(servers, topic, path, records)
    files = _files(path)
    proposal = propose_files(files, records)
    return SampledSource(Path(path).stem, "Files", _pattern(path, files), "", proposal)


def propose_files(files: Sequence[Path], records: int) -> Proposal:
    """Look at the first records of some files."""
    chosen = files[:_FILES]
    each = -(-records // len(chosen))
    kinds = [file for file in chosen if file.suffix == chosen[0].suffix]
    if chosen[0].suffix == ".parquet":
        return propose_rows(_parquet(kinds, each))
    if chosen[0].suffix == ".avro":
        return _avro(kinds, each)
    # A header of CSV is a line as well.
    lines = [_lines(file, each + 1) for file in chosen]
    if (document := _document(chosen[0], lines[0])) is not None:
        return document
    return propose_lines([found for found in lines if found] or [[]])


def _parquet(files: Sequence[Path], rows: int) -> pa.Table:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    found = [
        pa.Table.from_batches(list(islice(ParquetFile(file).iter_batches(rows), 1)))
        for file in files
        if ParquetFile(file).metadata.num_rows
    ]
    first = found or [ParquetFile(files[0]).schema_arrow.empty_table()]
    return pa.concat_tables(first, promote_options="permissive")


def _avro(files: Sequence[Path], rows: int) -> Proposal:
    import pyarrow as pa

    from millstream.model.data_type import type_ddl
    from millstream.systems.files.avro_container import columns_in, rows as rows_of

    schema = columns_in(files[0].read_bytes(), str(files[0]))
    raw = pa.RecordBatch.from_pydict(
        {
            "value": pa.array([file.read_bytes() for file in files], pa.binary()),
            "_origin": pa.array([str(file) for file in files], pa.string()),
        }
    )
    found = pa.Table.from_batches(rows_of(schema)(iter([raw])))
    right = found.filter(found.column("_reason").is_null()).select(list(schema.names))
    types = {field.name: type_ddl(field.type) for field in schema.fields}
    return propose_rows(right.slice(0, rows * len(files)), "avro", types)


def _document(file: Path, lines: Sequence[str]) -> Proposal | None:
    """Propose to read files as one JSON document each, if the first is one over several lines."""
    import pyarrow as pa

    first = next((line.strip() for line in lines if line.strip()), "")
    if first[:1] not in ("[", "{") or (first[0] == "{" and first[-1] == "}"):
        return None
    stream: Any = pa.input_stream(str(file))
    with stream:
        return propose_document(stream.read(_GREATEST_DOCUMENT).removeprefix(b"\xef\xbb\xbf"))


def _lines(file: Path, most: int) -> list[str]:
    import pyarrow as pa

    # By the ending of its name, it is decompressed.
    stream: Any = pa.input_stream(str(file))
    with TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="\n") as lines:
        return [line.rstrip("\r\n") for line in islice(lines, most)]


def _files(path: str) -> list[Path]:
    folder = Path(path)
    found = sorted(folder.iterdir()) if folder.is_dir() else map(Path, sorted(glob.glob(path)))
    files = [file for file in found if file.is_file() and file.name[0] not in "._"]
    if not files:
        expected = (
            "a file, a folder with files, a pattern such as 'logs/*.json', or kafka:HOST:PORT/TOPIC"
        )
        raise fault("ARGUMENT_REFUSED", option="PATH", value=path, expected=expected)
    return files


def _pattern(path: str, files: Sequence[Path]) -> str:
    """Return what the source reads: a folder or pattern as it is, beside a file all like it."""
    if not Path(path).is_file():
        return path
    suffixes = "".join(files[0].suffixes)
    return str(files[0].parent / f"*{suffixes}") if suffixes else str(files[0].parent)


def _of_topic(servers: str, topic: str, path: str, records: int) -> SampledSource:
    """Read the first values of a topic, by Spark."""
    from millstream.errors import Location
    from millstream.spark.session import open_session
    from millstream.systems.kafka.settings import Kafka

    if not servers or not topic:
        expected = "kafka:HOST:PORT/TOPIC, such as kafka:localhost:9092/orders"
        raise fault("ARGUMENT_REFUSED", option="PATH", value=path, expected=expected)
    connector, spark = Kafka(topic, servers, format="raw"), open_session("sample")
    connector.reach(spark, "sample", Location(path, 1))
    rows = connector.sample(spark, records).select("value").limit(records).collect()
    values = [bytes(row["value"]) for row in rows if row["value"] is not None]
    if not values or sum(value[:1] == b"\0" for value in values) * 2 > len(values):
        expected = "a topic with records of text; Avro needs the schemas of its writers"
        raise fault("ARGUMENT_REFUSED", option="PATH", value=path, expected=expected)
    lines = [value.decode(errors="surrogateescape") for value in values]
    return SampledSource(topic, "Kafka", topic, servers, propose_lines([lines], may_be_csv=False))

from __future__ import annotations

import bz2
import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.apps import app_of, forget_commit, rows, run

from millstream.crash import armed
from millstream.lake.home import Home
from millstream.lake.ledger import read_ledger
from millstream.lake.unreadable import UnreadableFiles
from millstream.systems.files.source import Files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT, name STRING"
AVRO = {
    "type": "record",
    "name": "Reading",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}


def lines(numbers: Iterable[int]) -> bytes:
    return b"".join(b'{"id": %d, "name": "n%d"}\n' % (n, n) for n in numbers)


def hadoop_snappy(*blocks: list[bytes]) -> bytes:
    """Compress as Hadoop does: blocks of chunks; each of both begins with its size."""
    found = b""
    for chunks in blocks:
        found += sum(map(len, chunks)).to_bytes(4, "big")
        for chunk in chunks:
            packed = pa.compress(chunk, codec="snappy", asbytes=True)
            found += len(packed).to_bytes(4, "big") + packed
    return found


GZIP = gzip.compress(lines(range(9_000)))
ZSTD = pa.compress(lines(range(9_000)), codec="zstd", asbytes=True)
GOOD: dict[str, bytes] = {
    "log-2026-11-18T05:00:00.json": lines([1]),
    "a b+é%20.json": lines([2]),
    "good.json.gz": gzip.compress(lines([3])),
    "good.json.bz2": bz2.compress(lines([4])),
    "good.json.zst": pa.compress(lines([5]), codec="zstd", asbytes=True),
    # A line may end in another chunk, or in another block, than it begins in.
    "good.json.snappy": hadoop_snappy(
        [lines([11])[:5], lines([11])[5:]], [lines([12, 13])[:30]], [lines([12, 13])[30:]]
    ),
}
BAD: dict[str, bytes] = {
    "plain.json.gz": lines([6]),
    "crc.json.gz": GZIP[:-8] + bytes(8),
    "cut.json.zst": ZSTD[:-100],
    "raw.json.snappy": pa.compress(lines([7]), codec="snappy", asbytes=True),
    "x.json.lz4": pa.compress(lines([8]), codec="lz4", asbytes=True),
}


class KilledError(Exception):
    pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def avro(numbers: Iterable[int], codec: str = "null") -> bytes:
    out = io.BytesIO()
    records = [{"id": n, "name": f"n{n}"} for n in numbers]
    fastavro.writer(out, fastavro.parse_schema(AVRO), records, codec=codec)
    return out.getvalue()


def parquet(numbers: list[int], path: Path) -> None:
    pq.write_table(pa.table({"id": numbers, "name": [f"n{n}" for n in numbers]}), path)


def aside(home: Path) -> dict[str, str]:
    """The names of files that are set aside, each with the reason."""
    found = UnreadableFiles(Home(home).connector("readings")).read()
    return {file.path.rpartition("/")[2]: file.reason for file in found}


def ids(home: Path) -> list[Any]:
    return sorted(number for (number,) in rows(home, "readings", "id"))


def read_again(home: Path, *paths: Path) -> None:
    UnreadableFiles(Home(home).connector("readings")).request(map(str, paths))


def test_an_unreadable_file_is_set_aside_and_the_others_land_once_however_drivers_die(
    spark: SparkSession, folder: Path, home: Path
) -> None:
    cut, whole = folder / "cut é.json.gz", gzip.compress(lines(range(10_000)))
    for name, content in {**GOOD, **BAD, cut.name: whole[:-100]}.items():
        (folder / name).write_bytes(content)
    source = Files(str(folder), schema=SCHEMA)

    for point in ("batch_staged", "sink_commit"):

        def die(reached: str, _: str, batch: int, at: str = point) -> None:
            if reached == at and batch == 0:
                raise KilledError

        with armed(home, die), pytest.raises(Exception, match="KilledError"):
            run(app_of(source), home)
    # Mended between the commit of its batch and the replay of it: still not a part of the batch.
    cut.write_bytes(whole)
    events = run(app_of(source), home)

    assert ids(home) == [1, 2, 3, 4, 5, 11, 12, 13]
    fix = "compress it with gzip, zstd or bzip2"
    assert aside(home) == {
        "cut é.json.gz": "it is cut off",
        "plain.json.gz": "it is not gzip",
        "crc.json.gz": "it is not what its checksum says",
        "cut.json.zst": "it is cut off",
        "raw.json.snappy": f"it is not in whole blocks, as Spark writes .snappy: {fix}",
        "x.json.lz4": f".lz4 files cannot be read: {fix}",
    }
    assert [event.kind for event in events if event.kind in ("differs", "restarting")] == []
    [entry] = read_ledger(Home(home)).sources
    assert (entry.input, entry.unreadable, entry.is_balanced) == (8, 6, True)

    read_again(home, cut, folder / "plain.json.gz")
    forget_commit(home, "readings")
    run(app_of(source), home)

    assert ids(home) == sorted([1, 2, 3, 4, 5, 11, 12, 13, *range(10_000)])
    assert set(aside(home)) == {
        "plain.json.gz", "crc.json.gz", "cut.json.zst", "raw.json.snappy", "x.json.lz4",
    }  # fmt: skip


def test_a_landed_file_that_is_unreadable_when_its_batch_is_replayed_keeps_its_rows(
    spark: SparkSession, folder: Path, home: Path
) -> None:
    file = folder / "a.json.gz"
    file.write_bytes(gzip.compress(lines([1])))
    source = Files(str(folder), schema=SCHEMA)
    run(app_of(source), home)

    file.write_bytes(b"no gzip")
    forget_commit(home, "readings")
    (folder / "b.json").write_bytes(lines([2]))
    events = run(app_of(source), home)

    assert ids(home) == [1, 2]
    assert aside(home) == {}
    assert [event.kind for event in events if event.kind == "differs"] == ["differs"]


@pytest.mark.parametrize("format_", ["parquet", "avro"])
def test_typed_files_land_whole_or_not_at_all(
    spark: SparkSession, folder: Path, home: Path, format_: str
) -> None:
    if format_ == "parquet":
        for name, numbers in (("good:1", [1, 2]), ("cut", [3]), ("dir", [4])):
            parquet(numbers, folder / f"{name}.{format_}")
        pq.write_table(pa.table({"id": ["x"]}), folder / "type.parquet")
    else:
        for codec in ("null", "deflate", "bzip2", "xz"):
            (folder / f"good:{codec}.avro").write_bytes(avro([1, 2], codec))
        (folder / "cut.avro").write_bytes(avro(range(3)))
        other = {**AVRO, "fields": [{"name": "id", "type": "string"}]}
        with (folder / "type.avro").open("wb") as out:
            fastavro.writer(out, fastavro.parse_schema(other), [{"id": "x"}])
    cut = folder / f"cut.{format_}"
    cut.write_bytes(cut.read_bytes()[:-5])

    run(app_of(Files(str(folder), format=format_, schema=SCHEMA)), home)

    assert ids(home) == ([1, 2, 4] if format_ == "parquet" else sorted([1, 2] * 4))
    found = aside(home)
    assert set(found) == {f"cut.{format_}", f"type.{format_}"}
    assert "cut off" in found[f"cut.{format_}"] or "ends too early" in found[f"cut.{format_}"]
    assert "id" in found[f"type.{format_}"]


def test_a_document_gives_its_records_or_one_malformed_row(
    spark: SparkSession, folder: Path, home: Path
) -> None:
    both: list[dict[str, Any]] = [{"id": 1, "name": "a\nb"}, {"id": 2}]
    (folder / "array.json").write_text(json.dumps(both, indent=2))
    (folder / "object.json.gz").write_bytes(gzip.compress(json.dumps({"id": 3}, indent=2).encode()))
    (folder / "cut.json").write_text('[{"id": 4},\n {"id"')
    (folder / "mixed.json").write_text('[{"id": 5}, 6, {"id": "x"}]')
    (folder / "none.json").write_text("[]")

    run(app_of(Files(str(folder), schema=SCHEMA, document=True)), home)

    landed = rows(home, "readings", "_origin", "_position", "id", "name", "_reason", "_raw")
    assert [(row[0].rpartition("/")[2], *row[1:]) for row in landed] == [
        ("array.json", 1, 1, "a\nb", None, None),
        ("array.json", 2, 2, None, None, None),
        ("cut.json", 1, None, None, "not JSON: input data was truncated", b'[{"id": 4},\n {"id"'),
        ("mixed.json", 1, 5, None, None, None),
        ("mixed.json", 2, None, None, "expected object, got int, at $", b"6"),
        ("mixed.json", 3, None, None, "expected int, got string, at $.id", b'{"id": "x"}'),
        ("object.json.gz", 1, 3, None, None, None),
    ]

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from millstream.checkpoint import Checkpoint, TableProgress
from millstream.checkpoint.checksum import crc32c, read_digest, read_seal, seal_path, write_sealed
from millstream.checkpoint.entry import CommitEntry, FileRead, Offsets, parse_file_log
from millstream.checkpoint.folder import CheckpointFolder

if TYPE_CHECKING:
    from pathlib import Path

ID = "e524ad20-5a09-4b60-b0eb-5a0bd2b5fcfd"


def checkpoint(path: Path, batches: int = 4, *, held: int | None = None) -> Checkpoint:
    """Write the checkpoint of a query over files, as Spark would, and look at it."""
    write_sealed(path / "metadata", json.dumps({"id": ID}))
    for n in range(batches):
        end = f'{{"logOffset":{n}}}'
        write_sealed(path / "offsets" / str(n), Offsets(0, 1000 + n, (end,)).to_text())
        write_sealed(path / "commits" / str(n), CommitEntry(0).to_text())
        line = FileRead(f"file:///in/{n}.json", 1, n).to_line()
        write_sealed(path / "sources" / "0" / str(n), f"v1\n{line}")
    return Checkpoint(path, TableProgress(ID, batches - 1 if held is None else held))


def with_state(path: Path, batches: int = 4) -> Checkpoint:
    """Write a checkpoint with one operator of one partition, its first version as a snapshot."""
    checkpoint(path, batches)
    store = path / "state" / "0" / "0"
    operator = {"operatorInfo": {"operatorId": 0, "operatorName": "dedupe"}, "stateStoreInfo": []}
    write_sealed(path / "state" / "0" / "_metadata" / "metadata", f"v1\n{json.dumps(operator)}")
    write_sealed(store / "_metadata" / "schema", "v2")
    for n in range(batches):
        commit = CommitEntry(0, {0: [[f"u{n}"]]}).to_text()
        write_sealed(path / "commits" / str(n), commit)
        write_sealed(store / f"{n + 1}_u{n}.changelog", f"changes of {n}")
        add_digest(store / f"{n + 1}_u{n}.changelog")
    with zipfile.ZipFile(store / "1_u0.zip", "w") as snapshot:
        snapshot.writestr("metadata", 'v1\n{"sstFiles":[]}')
    return Checkpoint(path, TableProgress(ID, batches - 1))


def add_digest(file: Path) -> None:
    data = file.read_bytes()
    said = {"algorithm": "CRC32C", "value": crc32c(data), "mainFileSize": len(data)}
    write_sealed(file.with_name(f"{file.name}.crc"), json.dumps(said))


def damaged(found: Checkpoint) -> list[tuple[str, str]]:
    return [(finding.file, finding.what) for finding in found.damage]


def test_a_sound_checkpoint_has_no_findings(tmp_path: Path) -> None:
    assert checkpoint(tmp_path / "plain").findings == ()
    assert with_state(tmp_path / "stateful").findings == ()
    assert Checkpoint(tmp_path / "none").findings == ()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "it is empty"),
        (b"v1", "it ends after the version"),
        (b"v9\n{}", "its first line is no version that Spark 4.2 writes: 'v9'"),
        (b'v1\n{"batchWat', "'{\"batchWat' is not JSON"),
        (b"v1\n{}\n{}", "it lacks 'batchWatermarkMs'"),
        (b"v1\n[]\n{}", "it holds '[]' where an object is due"),
        (b"\xff\xfe\x00", "it is not text"),
    ],
)
def test_the_last_offsets_are_read_strictly(tmp_path: Path, content: bytes, what: str) -> None:
    found = checkpoint(tmp_path)
    (tmp_path / "offsets" / "3").write_bytes(content)

    assert damaged(found) == [("offsets/3", what)]


def test_a_digit_that_changed_is_found_by_the_checksum(tmp_path: Path) -> None:
    found = checkpoint(tmp_path)
    file = tmp_path / "offsets" / "3"
    file.write_bytes(file.read_bytes().replace(b"1003", b"1013"))

    assert damaged(found) == [("offsets/3", "it is not what its checksum says")]


def test_entries_that_spark_does_not_need_are_harmless(tmp_path: Path) -> None:
    found = checkpoint(tmp_path)
    (tmp_path / "offsets" / "1").unlink()
    (tmp_path / "commits" / "2").write_bytes(b"")

    assert [(f.file, f.is_harmless) for f in found.findings] == [
        ("offsets/1", True),
        ("commits/2", True),
    ]


def test_the_offsets_before_the_last_are_needed(tmp_path: Path) -> None:
    found = checkpoint(tmp_path)
    (tmp_path / "offsets" / "2").unlink()

    assert damaged(found) == [("offsets/2", "it is missing")]


def test_commits_that_are_gone_are_noticed(tmp_path: Path) -> None:
    found = checkpoint(tmp_path)
    for file in (tmp_path / "commits").iterdir():
        file.unlink()

    assert damaged(found) == [
        ("commits/2", "it is missing: the commits are gone, though the offsets continue to 3")
    ]


def test_the_last_commit_is_needed_and_so_is_the_one_before_the_last_plan(tmp_path: Path) -> None:
    broken, lacking = checkpoint(tmp_path / "broken"), checkpoint(tmp_path / "lacking", held=1)
    (tmp_path / "broken" / "commits" / "3").write_bytes(b"")
    for number in ("2", "3"):
        (tmp_path / "lacking" / "commits" / number).unlink()

    assert damaged(broken) == [("commits/3", "it is empty")]
    what = "it is missing: the commits end at 1, though the offsets continue to 3"
    assert damaged(lacking) == [("commits/2", what)]


def test_commits_ahead_of_offsets_are_noticed(tmp_path: Path) -> None:
    found = checkpoint(tmp_path)
    (tmp_path / "offsets" / "3").unlink()

    assert damaged(found) == [
        ("offsets/3", "it is missing, though the table holds batch 3"),
        ("commits/3", "it is ahead of the offsets, which end at 2"),
    ]


def test_a_table_that_does_not_fit_is_noticed(tmp_path: Path) -> None:
    checkpoint(tmp_path)

    other = Checkpoint(tmp_path, TableProgress("another", 3))
    older = Checkpoint(tmp_path, TableProgress(ID, 2))

    assert damaged(other) == [
        ("metadata", "it names another query than the table, which names another")
    ]
    assert damaged(older) == [
        ("commits/3", "batch 3 is marked as done, but the table holds batches up to 2")
    ]


def test_metadata_is_needed_once_there_are_batches(tmp_path: Path) -> None:
    found = checkpoint(tmp_path)
    (tmp_path / "metadata").unlink()

    assert damaged(found) == [("metadata", "it is missing")]


def test_the_file_log_must_be_whole_from_its_last_compacted_entry_on(tmp_path: Path) -> None:
    found = checkpoint(tmp_path, 12)
    log = tmp_path / "sources" / "0"
    (log / "9").rename(log / "9.compact")
    seal_path(log / "9").rename(seal_path(log / "9.compact"))
    (log / "4").write_bytes(b"")
    (log / "10").unlink()

    assert [(f.file, f.what, f.is_harmless) for f in found.findings] == [
        ("sources/0/4", "it is empty", True),
        ("sources/0/10", "it is missing", False),
    ]


def test_an_entry_of_the_file_log_that_offsets_name_must_be_there(tmp_path: Path) -> None:
    found = checkpoint(tmp_path)
    (tmp_path / "sources" / "0" / "3").unlink()

    assert damaged(found) == [("sources/0/3", "it is missing")]


def test_leftover_temporary_files_are_harmless(tmp_path: Path) -> None:
    found = checkpoint(tmp_path)
    (tmp_path / "offsets" / ".4.aa.tmp").touch()
    (tmp_path / "offsets" / "..4.aa.tmp.crc").touch()

    assert {(f.part, f.is_harmless) for f in found.findings} == {("temporary", True)}
    assert len(found.findings) == 2


@pytest.mark.parametrize("content", [b"", b"crc\x00", b"garbage of any length at all"])
def test_a_damaged_checksum_is_distinguished_from_a_damaged_file(
    tmp_path: Path, content: bytes
) -> None:
    found = checkpoint(tmp_path)
    (tmp_path / "offsets" / ".3.crc").write_bytes(content)

    assert damaged(found) == [("offsets/.3.crc", "it is damaged; the file it is kept of is whole")]


@pytest.mark.parametrize(
    ("file", "is_spare"), [("4_u3.changelog", False), ("2_u1.changelog", False), ("1_u0.zip", True)]
)
def test_state_is_followed_back_to_its_snapshot(tmp_path: Path, file: str, is_spare: bool) -> None:
    found = with_state(tmp_path)
    (tmp_path / "state" / "0" / "0" / file).write_bytes(b"")

    [finding] = found.damage

    assert (finding.file, finding.is_spare) == (f"state/0/0/{file}", is_spare)


def test_changes_before_the_snapshot_are_harmless(tmp_path: Path) -> None:
    found = with_state(tmp_path)
    store = tmp_path / "state" / "0" / "0"
    (store / "1_u0.zip").rename(store / "3_u2.zip")
    (store / "2_u1.changelog").write_bytes(b"zzzzzzzzzzzz")

    [finding] = found.findings

    assert finding.is_harmless


def test_state_is_checked_against_its_checksums_only_if_it_is_read(tmp_path: Path) -> None:
    with_state(tmp_path)
    file = tmp_path / "state" / "0" / "0" / "4_u3.changelog"
    file.write_bytes(b"Changes of 3")

    assert Checkpoint(tmp_path, TableProgress(ID, 3), deep=False).damage == ()
    assert damaged(Checkpoint(tmp_path, TableProgress(ID, 3))) == [
        ("state/0/0/4_u3.changelog", "it is not what its checksum says")
    ]


@pytest.mark.parametrize("content", [b"changes of", b"changes of 3 and more"])
def test_state_of_another_size_is_noticed_without_reading_it(
    tmp_path: Path, content: bytes
) -> None:
    with_state(tmp_path)
    (tmp_path / "state" / "0" / "0" / "4_u3.changelog").write_bytes(content)

    [damage] = Checkpoint(tmp_path, TableProgress(ID, 3), deep=False).damage

    assert damage.file == "state/0/0/4_u3.changelog"


def test_descriptions_of_operators_are_there_all_or_none(tmp_path: Path) -> None:
    found = with_state(tmp_path)
    first, second = (tmp_path / "state" / n / "_metadata" / "metadata" for n in "01")
    write_sealed(second, first.read_text())
    write_sealed(tmp_path / "state" / "1" / "0" / "_metadata" / "schema", "v2")

    first.unlink()
    assert damaged(found) == [("state/0/_metadata/metadata", "it is missing")]
    second.unlink()
    assert Checkpoint(tmp_path, found.held).damage == ()


def test_a_schema_of_state_that_is_not_as_it_was_written_is_noticed(tmp_path: Path) -> None:
    found = with_state(tmp_path)
    (tmp_path / "state" / "0" / "0" / "_metadata" / "schema").write_text("v3")

    assert damaged(found) == [("state/0/0/_metadata/schema", "it is not what its checksum says")]


def test_state_that_is_gone_is_noticed(tmp_path: Path) -> None:
    found = with_state(tmp_path)
    (tmp_path / "state").rename(tmp_path / "elsewhere")

    assert damaged(found) == [("state", "it is missing")]


def test_either_checksum_proves_a_state_file(tmp_path: Path) -> None:
    found = with_state(tmp_path)
    digest = tmp_path / "state" / "0" / "0" / "4_u3.changelog.crc"
    digest.write_bytes(digest.read_bytes()[:20])

    assert [(f.part, f.file) for f in found.damage] == [
        ("checksum", "state/0/0/4_u3.changelog.crc")
    ]


@given(data=st.binary(max_size=2000), place=st.integers(0, 1999), bit=st.integers(0, 7))
def test_one_bit_is_attributed_to_the_file_or_to_its_checksum(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, place: int, bit: int
) -> None:
    file = tmp_path_factory.mktemp("sealed") / "file"
    write_sealed(file, data.decode("latin-1"))
    whole, seal = file.read_bytes(), seal_path(file).read_bytes()

    assert read_seal(file) == "whole"
    seal_path(file).write_bytes(flipped(seal, place, bit))
    assert read_seal(file) == "seal broken"
    if whole:
        seal_path(file).write_bytes(seal)
        file.write_bytes(flipped(whole, place, bit))
        assert read_seal(file) == "broken"


def flipped(data: bytes, place: int, bit: int) -> bytes:
    at = place % len(data)
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def test_a_file_without_a_checksum_is_taken_as_it_is(tmp_path: Path) -> None:
    found = checkpoint(tmp_path)
    for file in tmp_path.rglob(".*.crc"):
        file.unlink()

    assert found.findings == ()
    assert read_digest(tmp_path / "metadata") == "none"


@given(
    st.integers(0, 2**50),
    st.integers(0, 2**50),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)
def test_what_is_written_is_read_again(watermark: int, at: int, conf: dict[str, str]) -> None:
    offsets = Offsets(watermark, at, ('{"logOffset":3}', "-"), conf)
    commit = CommitEntry(watermark, {0: [["a"], ["b"]]})
    files = (FileRead("file:///a b.json", at, 2), FileRead("file:///ä", at, 3))

    assert Offsets.parse(offsets.to_text().encode()) == offsets
    assert CommitEntry.parse(commit.to_text().encode()) == commit
    lines = "\n".join(("v1", *(file.to_line() for file in files)))
    assert parse_file_log(lines.encode()) == files


def test_a_compacted_entry_is_named_by_the_interval_of_the_others(tmp_path: Path) -> None:
    log = tmp_path / "sources" / "0"
    log.mkdir(parents=True)

    assert [CheckpointFolder(tmp_path).file_name(n) for n in (8, 9, 19)] == [
        "8",
        "9.compact",
        "19.compact",
    ]
    for number in (3, 7):
        (log / f"{number}.compact").touch()
    assert [CheckpointFolder(tmp_path).file_name(n) for n in (9, 11)] == ["9", "11.compact"]

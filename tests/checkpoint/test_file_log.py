from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.checkpoint import CheckpointLog, files_of_batch, forget_files
from millstream.checkpoint.checksum import read_seal, write_sealed

if TYPE_CHECKING:
    from pathlib import Path

FACTS = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'


def logged(path: Path) -> CheckpointLog:
    """Log as Spark does: a file in each of eleven entries, the tenth of which has all before."""
    for number in range(11):
        batches = range(number + 1) if number == 9 else [number]
        entries = [
            {"path": f"file:///in/a%20{n}.json", "timestamp": 5, "batchId": n} for n in batches
        ]
        name = f"{number}.compact" if number == 9 else str(number)
        text = "\n".join(("v1", *map(json.dumps, entries)))
        write_sealed(path / "sources" / "0" / name, text)
    for batch, end in enumerate((0, 8, 9, 9, 10)):
        offset = json.dumps({"logOffset": end})
        write_sealed(path / "offsets" / str(batch), f"v1\n{FACTS}\n{offset}")
    return CheckpointLog(path)


def test_the_files_of_a_batch_are_those_between_its_offset_and_the_one_before(
    tmp_path: Path,
) -> None:
    log = logged(tmp_path)
    (tmp_path / "sources" / "0" / "5").unlink()

    found = [files_of_batch(log, batch) for batch in range(5)]

    assert found == [
        ("/in/a 0.json",),
        tuple(f"/in/a {n}.json" for n in range(1, 9)),
        ("/in/a 9.json",),
        (),
        ("/in/a 10.json",),
    ]


def test_files_that_are_to_be_read_again_leave_every_entry(tmp_path: Path) -> None:
    log = logged(tmp_path)

    forget_files(tmp_path, {"/in/a 3.json", "/in/a 9.json"})

    entries = sorted((tmp_path / "sources" / "0").glob("[0-9]*"))
    text = "".join(entry.read_text() for entry in entries)
    assert "a%203.json" not in text
    assert "a%209.json" not in text
    assert text.count("a%204.json") == 2
    assert {read_seal(entry) for entry in entries} == {"whole"}
    assert files_of_batch(log, 2) == ()

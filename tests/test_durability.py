"""What is written outlasts a power cut: each file is on disk before its name, both before the end.

The calls are recorded, in their order, and compared with the rule; delta-rs, which is not Python,
and SQLite are watched by strace where that is installed. A simulated power cut drops all that was
not forced to disk when a write was acknowledged, and what is left is read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.alert.notices import NOTICE
from tests.lake.test_delta import files, opened as table_in, rows_of
from tests.power import Power
from tests.systems.stores import connected, opened, put, rows_in, table

import millstream as ms
from millstream.checkpoint import CheckpointLog
from millstream.checkpoint.checksum import read_seal, write_sealed
from millstream.lake.change_log import ChangeLog
from millstream.lake.compaction import FileSizes, compact_all
from millstream.lake.delta import FencedTable
from millstream.lake.durable import sync_folder
from millstream.lake.files import DataFile
from millstream.lake.home import Home
from millstream.lake.key_index import KeyIndex
from millstream.lake.lease import Lease
from millstream.lake.log import Facts, commit_path, files_added
from millstream.lake.retention import cut
from millstream.lake.rows import read_rows
from millstream.lake.staged_batches import StagedBatches, read_parts
from millstream.lake.staging import Staged
from millstream.landing.inbox import Inbox
from millstream.run.query import StreamOptions, StreamRun
from millstream.serve.changes import Changes
from millstream.serve.fence import Driver
from millstream.systems.files.settings import OWN, FileSink
from millstream.systems.log.courier import LogCourier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SRC = Path(ms.__file__).parent
OPTIONAL = ".crc"
"""A checksum of Delta, which readers do without if it is torn."""


@dataclass
class Disk:
    """What was done to files, in order: ("sync", path), ("name", from, to) or ("commit",)."""

    events: list[tuple[str, ...]] = field(default_factory=list)

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sync = os.fsync

        def fsync(handle: int) -> None:
            self.events.append(("sync", os.readlink(f"/proc/self/fd/{handle}")))
            sync(handle)

        monkeypatch.setattr(os, "fsync", fsync)
        for name in ("replace", "rename", "link"):
            monkeypatch.setattr(os, name, self._naming(getattr(os, name)))

    def _naming(self, act: Callable[..., None]) -> Callable[..., None]:
        def named(source: Any, target: Any, **options: Any) -> None:
            self.events.append(("name", str(source), str(target)))
            act(source, target, **options)

        return named

    def commit(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def committed(*args: Any) -> Any:
            self.events.append(("commit",))
            return act(*args)

        return committed

    def syncs(self, path: Path | str) -> list[int]:
        return [n for n, event in enumerate(self.events) if event == ("sync", str(path))]

    @property
    def commits(self) -> list[int]:
        return [n for n, event in enumerate(self.events) if event == ("commit",)]

    @property
    def faults(self) -> list[str]:
        """Names that were given before the file was on disk, or that are not on disk themselves."""
        found = []
        for n, (kind, *paths) in enumerate(self.events):
            if kind != "name" or paths[1].endswith(OPTIONAL):
                continue
            source, target = map(Path, paths)
            if not any(at < n for at in self.syncs(source)):
                found.append(f"{source.name} is not on disk when it becomes {target.name}")
            if not any(at > n for at in self.syncs(target.parent)):
                found.append(f"the name {target.name} is not on disk at the end")
        return found


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    made.watch(monkeypatch)
    return made


@pytest.fixture
def power() -> Iterator[Power]:
    with closing(Power()) as made:
        yield made


def manifest(folder: Path) -> None:
    Home.at(folder).prepare("shop", sources=["orders"])


def lease(folder: Path) -> None:
    home = Home.at(folder)
    home.prepare("shop", sources=[])
    for _ in range(2):
        Lease.acquire(home).release()


def file_sink(folder: Path) -> None:
    store = opened(FileSink(str(folder), "json"), mode="append")
    put(store, 0, table({"id": 1, "text": "a"}))
    put(store, 1, table({"id": 2, "text": "b"}))


def function_sink(folder: Path) -> None:
    sink = ms.sink(lambda rows, batch: None, name="put")
    store = connected(sink, Driver("shop/items", 1, "query", folder=folder), mode="append")
    store.take()
    put(store, 0, table({"id": 1, "text": "a"}))


def delta_sink(folder: Path) -> None:
    store = opened(ms.DeltaPath(str(folder / "t")), mode="append")
    put(store, 0, table({"id": 1, "text": "a"}))


def home_table(folder: Path) -> None:
    table_in(folder / "t", epoch=1).append(files(folder / "s", [("a", 1)]), Facts("q", batch=0))


def deleted_in_place(folder: Path) -> None:
    made = table_in(folder / "t", epoch=1)
    made.append(files(folder / "s", [("a", 1), ("b", 2)]), Facts("q", batch=0))
    made.prepare(["k"])
    made.delete_in_place(["k"])
    made.upsert(files(folder / "s", [("b", 3)]), ["k"], Facts("q", batch=1))


def index_file(folder: Path) -> None:
    (folder / "t").mkdir()
    rows: list[tuple[str | None, int]] = [(f"k{number}", number) for number in range(70_000)]
    [file] = files(folder / "s", rows)
    KeyIndex(folder / "t", "id", ["k"], {"k": "string"}).make(file.path, "f.parquet")


def sealed(folder: Path) -> None:
    write_sealed(folder / "offsets" / "0", "v1\n{}\n{}")


def inbox(folder: Path) -> None:
    made = Inbox(folder, epoch=1, landed=lambda: "")
    made.offer("a record")
    made.close()


WRITERS: list[Callable[[Path], None]] = [
    *(manifest, lease, file_sink, function_sink, delta_sink, home_table, deleted_in_place),
    *(index_file, sealed, inbox),
]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_file_is_on_disk_before_it_gets_its_name_and_its_name_before_the_end(
    tmp_path: Path, disk: Disk, write: Callable[[Path], None]
) -> None:
    write(tmp_path)

    assert any(event[0] == "name" for event in disk.events)
    assert disk.faults == []


@pytest.mark.parametrize("act", ["append", "replace"])
def test_the_files_of_a_batch_are_on_disk_before_its_commit_and_that_before_it_is_acknowledged(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    target = table_in(tmp_path / "t", epoch=1)
    staged = files(tmp_path / "s", [("a", 1)])
    disk.events.clear()
    monkeypatch.setattr(target._log, "write", disk.commit(target._log.write))

    getattr(target, act)(staged, Facts("q", batch=0))

    [commit] = disk.commits
    [added] = files_added(target.path, target.version) or ()
    moved = disk.events.index(("name", str(staged[0].path), str(added)))
    [on_disk] = disk.syncs(staged[0].path)
    assert on_disk < moved < disk.syncs(target.path)[0] < commit
    [written] = disk.syncs(commit_path(target.path, target.version))
    assert commit < written < disk.syncs(target.path / "_delta_log")[0]


def test_a_compacted_file_is_on_disk_before_its_commit_and_a_cut_before_files_are_deleted(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = table_in(tmp_path / "t", epoch=1, properties={"delta.checkpointInterval": "4"})
    for batch in range(12):
        target.append(files(tmp_path / "s", [("a", batch)]), Facts("q", batch=batch))
    (tmp_path / "m").mkdir()
    disk.events.clear()
    monkeypatch.setattr(target._log, "write", disk.commit(target._log.write))

    compact_all(target, tmp_path / "m", FileSizes(together=12))

    [commit] = disk.commits
    [named] = [n for n, event in enumerate(disk.events) if event[-1].endswith(".parquet")][1:2]
    assert disk.events[named][0] == "name"
    assert disk.syncs(disk.events[named][1])[0] < named < disk.syncs(target.path)[0] < commit
    [written] = disk.syncs(commit_path(target.path, target.version))
    assert commit < written

    log, unlink = target.path / "_delta_log", Path.unlink

    def delete(path: Path, *, missing_ok: bool = False) -> None:
        disk.events.append(("delete", str(path)))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", delete)
    target.checkpoint()
    disk.events.clear()
    cut(target, target.version)

    deleted = [n for n, event in enumerate(disk.events) if event[0] == "delete"]
    first_file = next(n for n in deleted if Path(disk.events[n][1]).parent == target.path)
    assert disk.events[deleted[0]][1] == str(commit_path(target.path, 0))
    assert deleted[0] < disk.syncs(log)[0] < first_file
    assert disk.syncs(log)[-1] > deleted[-1]


def test_the_file_of_a_batch_is_on_disk_with_its_name_before_the_fence_that_commits_it(
    tmp_path: Path, disk: Disk
) -> None:
    file_sink(tmp_path)

    own = tmp_path / OWN
    fences = [n for n, event in enumerate(disk.events) if event[-1] == str(own / "items.json")]
    parts = [n for n, event in enumerate(disk.events) if event[-1].endswith(".part")]
    assert (len(fences), len(parts)) == (3, 2)
    for part, fence in zip(parts, fences[1:], strict=True):
        assert any(part < at < fence for at in disk.syncs(own))


def test_the_epoch_of_a_driver_is_on_disk_before_the_one_before_is_forgotten(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home.at(tmp_path)
    home.prepare("shop", sources=[])
    Lease.acquire(home).release()
    disk.events.clear()
    unlink = os.unlink

    def forget(path: Any, **options: Any) -> None:
        if Path(path) == home.lease / "00000001":
            disk.events.append(("commit",))
        unlink(path, **options)

    monkeypatch.setattr(os, "unlink", forget)

    Lease.acquire(home).release()

    [forgotten] = disk.commits
    assert disk.syncs(home.lease)[0] < forgotten


def test_a_file_of_the_inbox_is_on_disk_with_the_age_that_orders_it(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "utime", lambda path, ns: disk.events.append(("commit",)))

    inbox(tmp_path)

    assert disk.commits[0] < disk.syncs(tmp_path / ".draft")[0]


def test_a_line_of_a_log_is_on_disk_and_so_is_the_name_of_a_new_one(
    tmp_path: Path, disk: Disk
) -> None:
    courier = LogCourier(tmp_path / "alerts.jsonl")

    courier.send(NOTICE)
    courier.send(NOTICE)

    assert len(disk.syncs(tmp_path / "alerts.jsonl")) == 2
    assert len(disk.syncs(tmp_path)) == 1


def test_the_offsets_of_a_batch_are_on_disk_before_its_output_is_committed(
    tmp_path: Path, disk: Disk
) -> None:
    log = CheckpointLog(tmp_path / "checkpoints" / "clean")
    (log.path / "offsets").mkdir(parents=True)
    (log.path / "offsets" / "0").write_text("v1")
    (log.path / "metadata").write_text(json.dumps({"id": "q"}))
    sink: Any = SimpleNamespace(
        facts=Facts(), stage=lambda frame, batch: None, commit=disk.commit(lambda *of: None)
    )
    frame: Any = None
    run = StreamRun(frame, sink, log, StreamOptions("append", lambda _: None))

    run._process(frame, 0)

    [offsets], [folder] = disk.syncs(log.path / "offsets" / "0"), disk.syncs(log.path / "offsets")
    [commit] = disk.commits
    assert offsets < folder < commit


def test_an_answer_that_the_next_difference_is_taken_from_is_on_disk(
    tmp_path: Path, disk: Disk
) -> None:
    log = ChangeLog.begin(Home.at(tmp_path), "items")

    def compute(frame: object, folder: Path) -> Staged:
        folder.mkdir()
        pq.write_table(pa.table({"k": ["a"], "_gone0": [False]}), folder / "part.parquet")
        return Staged((DataFile.read(folder / "part.parquet", {}),), {}, "digest")

    served: Any = SimpleNamespace(
        key=("k",),
        batches=log.batches,
        has_changes=True,
        marks=("_gone0",),
        mark=lambda frame: frame,
        compute=compute,
    )
    frame: Any = SimpleNamespace(columns=["k", "_gone0"])

    Changes(served, log).stage(frame, 0)

    answer = log.answer(0)
    [rows], [folder] = disk.syncs(answer / "part.parquet"), disk.syncs(answer)
    assert rows < folder < disk.syncs(log.path)[-1]


UPSERT = """
import os, sys
from pathlib import Path
from tests.lake.test_delta import files, opened
from millstream.lake.delta import Facts

place = Path(sys.argv[1])
table = opened(place / "t", epoch=1, properties={"delta.enableChangeDataFeed": "true"})
table.append(files(place / "s", [("a", 1), ("c", 3)]), Facts("q", batch=0))
staged = files(place / "s", [("a", 2), ("b", 3)])
os.write(2, b"begins")
table.upsert(staged, ["k"], Facts("q", batch=1))
os.write(2, b"acknowledged")
"""
SYNCED = re.compile(r"^\d+\s+f(?:data)?sync\(\d+<(?P<file>[^>]*)>")


def synced_by(program: str, place: Path, kinds: str) -> set[str]:
    """Name what a program forces to disk before it says that its work is acknowledged."""
    calls = place / "calls"
    watched = ["strace", "-f", "-y", "-s", "300", "-e", kinds, "-o", str(calls)]
    environment = os.environ | {"PYTHONPATH": f"{SRC.parent}:{Path.cwd()}"}
    command = [*watched, sys.executable, "-c", program, str(place)]
    subprocess.run(command, check=True, env=environment, capture_output=True)
    lines = calls.read_text().splitlines()
    begin = next(n for n, line in enumerate(lines) if '"begins"' in line)
    end = next(n for n, line in enumerate(lines) if '"acknowledged"' in line)
    return {found["file"] for line in lines[begin:end] if (found := SYNCED.match(line))}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_what_delta_rs_writes_for_a_merge_is_on_disk_before_that_is_acknowledged(
    tmp_path: Path,
) -> None:
    synced = synced_by(UPSERT, tmp_path, "trace=fsync,linkat,rename,write")

    target = FencedTable(tmp_path / "t", name="t", epoch=1)
    changes = tmp_path / "t" / "_change_data"
    written = [*(files_added(target.path, target.version) or ()), *changes.glob("*.parquet")]
    assert len(written) >= 2
    commit = commit_path(target.path, target.version)
    folders = {target.path, changes, commit.parent}
    assert {str(path) for path in (*written, commit, *folders)} <= synced


SQLITE = """
import os, sys
from pathlib import Path
import millstream as ms
from tests.alert.test_deliveries import Deliveries, enter
from tests.systems.stores import opened, put, table

place = Path(sys.argv[1])
store = opened(ms.SQLite(str(place / "store.db"), table="items"), mode="append")
deliveries = Deliveries(place / "alerts", epoch=1)
os.write(2, b"begins")
put(store, 0, table({"id": 1, "text": "a"}))
enter(deliveries, "unpicked", 1)
os.write(2, b"acknowledged")
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_what_sqlite_commits_for_stores_and_deliveries_is_on_disk_before_that_is_acknowledged(
    tmp_path: Path,
) -> None:
    synced = synced_by(SQLITE, tmp_path, "trace=fsync,fdatasync,write")

    assert {f"{tmp_path}/store.db-wal", f"{tmp_path}/alerts/deliveries.db-wal"} <= synced


def read_table(folder: Path) -> list[Any]:
    return rows_of(folder / "t")


def read_deleted(folder: Path) -> list[Any]:
    rows = read_rows(folder / "t")
    return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def read_files(folder: Path) -> list[Any]:
    store = connected(
        FileSink(str(folder), "json"), Driver("shop/items", 2, "query"), mode="append"
    )
    assert store.take().batch == 1
    return [row["id"] for row in rows_in(FileSink(str(folder), "json"))]


def read_function(folder: Path) -> list[Any]:
    sink = ms.sink(lambda rows, batch: None, name="put")
    driver = Driver("shop/items", 2, "query", folder=folder)
    return [connected(sink, driver, mode="append").take().batch]


def read_delta(folder: Path) -> list[Any]:
    return [row["id"] for row in rows_in(ms.DeltaPath(str(folder / "t")))]


def read_inbox(folder: Path) -> list[Any]:
    return [file.read_text() for file in sorted(folder.glob("*.txt"))]


def read_lease(folder: Path) -> list[Any]:
    with Lease.acquire(Home.at(folder)) as held:
        return [held.epoch]


def log(folder: Path) -> None:
    LogCourier(folder / "alerts.jsonl").send(NOTICE)


def read_log(folder: Path) -> list[Any]:
    return [json.loads(line)["id"] for line in (folder / "alerts.jsonl").read_text().splitlines()]


def staged_batch(folder: Path) -> None:
    [file] = files(folder / "staged", [("a", 1)])
    StagedBatches(folder / "staged").keep(Staged((file,), {}, "digest"), "q", 0, ["k", "n"])
    sync_folder(folder)


def read_staged_batch(folder: Path) -> list[Any]:
    kept = StagedBatches(folder / "staged").kept("q", 0, ["k", "n"])
    assert kept is not None
    return [row for part in read_parts(kept.files) for row in part.to_pylist()]


ACKNOWLEDGED: list[tuple[Any, Any, list[Any]]] = [
    (home_table, read_table, [("a", 1)]),
    (deleted_in_place, read_deleted, [("a", 1), ("b", 3)]),
    (file_sink, read_files, [1, 2]),
    (function_sink, read_function, [0]),
    (delta_sink, read_delta, [1]),
    (inbox, read_inbox, ["a record\n"]),
    (log, read_log, [NOTICE.id]),
    (staged_batch, read_staged_batch, [{"k": "a", "n": 1}]),
    (manifest, lambda folder: Home.at(folder).read_manifest()["sources"], ["orders"]),
    (lease, read_lease, [3]),
]


@pytest.mark.parametrize(
    ("write", "read", "wanted"), ACKNOWLEDGED, ids=[each[0].__name__ for each in ACKNOWLEDGED]
)
def test_what_was_acknowledged_is_there_after_a_power_cut(
    tmp_path: Path,
    power: Power,
    monkeypatch: pytest.MonkeyPatch,
    write: Any,
    read: Any,
    wanted: list[Any],
) -> None:
    folder = tmp_path / "before"
    folder.mkdir()
    power.watch(monkeypatch)

    write(folder)

    power.cut(folder, tmp_path / "after")
    assert read(tmp_path / "after") == wanted


def test_a_file_of_a_checkpoint_never_has_the_checksum_of_another_after_a_power_cut(
    tmp_path: Path, power: Power, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, seals = tmp_path / "before", list[str]()
    folder.mkdir()

    def cut() -> None:
        power.cut(folder, into := tmp_path / f"after{len(seals)}")
        seals.append(read_seal(into / "0") if (into / "0").exists() else "not there")

    power.watch(monkeypatch, after=cut)
    write_sealed(folder / "0", "v1\n{}\nbefore")
    write_sealed(folder / "0", "v1\n{}\nafter")

    assert set(seals) == {"not there", "none", "whole"}
    assert seals[-1] == "whole"


def test_nothing_is_forced_to_disk_but_in_one_module() -> None:
    callers = [file for file in SRC.rglob("*.py") if re.search(r"\bfsync\(", file.read_text())]

    assert [file.relative_to(SRC).as_posix() for file in callers] == ["lake/durable.py"]

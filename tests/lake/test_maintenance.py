from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings, strategies as st
from tests.faults import raises
from tests.lake.test_delta import files, opened, rows_of

from millstream.crash import MAINTENANCE_POINTS, armed
from millstream.errors import OvertakenError
from millstream.lake.compaction import FileSizes, compact_all, plan, rewritten
from millstream.lake.delta import FencedTable
from millstream.lake.log import Facts, commit_path, facts_of, files_added, first_version, versions
from millstream.lake.maintenance import lengths_under
from millstream.lake.retention import (
    Retention,
    TableReader,
    choose_cut,
    cut,
    delete_orphans,
    drop_rows,
)
from millstream.lake.stored import StoredFile, stored_files
from millstream.lake.travel import existing_version

SMALL = FileSizes(together=3)
OFTEN = {"delta.checkpointInterval": "4"}
LITTLE = Retention(most_versions=3)


class KilledError(Exception):
    """The driver dies here."""


@dataclass
class Follower:
    """Reads a table commit by commit, as Spark's stream does; a new one reads a snapshot first."""

    rows: list[int] = field(default_factory=list)
    version: int = -1

    def read(self, path: Path) -> None:
        latest = DeltaTable(str(path)).version()
        if self.version < 0 and not commit_path(path, 0).exists():
            for file in stored_files(DeltaTable(str(path))):
                self._take(path / file.path)
            self.version = latest
        for version in range(self.version + 1, latest + 1):
            added = files_added(path, version)
            assert added is not None, f"version {version} is gone"
            for each in added:
                self._take(each)
        self.version = latest

    def _take(self, file: Path) -> None:
        self.rows += [int(n or 0) for n in pq.read_table(file).column("n").to_pylist()]


@dataclass
class Home:
    """A table, its driver and its readers."""

    folder: Path
    epoch: int = 1
    batches: int = 0
    readers: list[Follower] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = self._opened()

    def _opened(self) -> FencedTable:
        return opened(self.path, self.epoch, properties=OFTEN)

    @property
    def path(self) -> Path:
        return self.folder / "tables" / "t"

    def batch(self) -> None:
        rows: list[tuple[str | None, int]] = [("a", 10 * self.batches)]
        rows.append(("b", 10 * self.batches + 1))
        self.table.append(files(self.folder / "s", rows), Facts("q", batch=self.batches))
        self.batches += 1

    def restart(self) -> None:
        self.epoch += 1
        self.table = self._opened()

    def compact(self) -> None:
        staging = self.folder / "m"
        staging.mkdir(exist_ok=True)
        compact_all(self.table, staging, SMALL)

    def forget_versions(self) -> None:
        readers = [TableReader("q", "", follower.version) for follower in self.readers]
        cut(self.table, choose_cut(self.path, LITTLE, readers).first)

    def killed(self, point: str) -> None:
        def kill(reached: str, query: str, batch: int) -> None:
            if reached == point:
                raise KilledError

        with armed(self.folder, kill):
            try:
                self.compact()
                self.forget_versions()
            except KilledError:
                self.restart()

    def check(self) -> None:
        expected = [n for b in range(self.batches) for n in (10 * b, 10 * b + 1)]
        assert sorted(n for _, n in rows_of(self.path)) == expected
        assert facts_of(self.path).batch == self.batches - 1
        ordered = Follower()
        for file in stored_files(self.table.snapshot()):
            ordered._take(self.path / file.path)
        assert ordered.rows == expected
        for reader in (*self.readers, Follower()):
            reader.read(self.path)
            assert reader.rows == expected
        for version in range(first_version(self.path), versions(self.path).stop):
            batch = facts_of(self.path, version=version).batch
            then = DeltaTable(str(self.path), version=version).to_pyarrow_table()
            assert then.num_rows == 2 * (batch + 1)


ACTS = st.lists(
    st.sampled_from(
        [*["batch"] * 6, "compact", "forget", "restart", "read", "join", *MAINTENANCE_POINTS]
    ),
    max_size=30,
)


@settings(max_examples=25)
@given(ACTS)
def test_whatever_runs_and_dies_when_table_facts_readers_and_kept_versions_are_whole(
    acts: list[str],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        for act in acts:
            match act:
                case "batch":
                    home.batch()
                case "compact":
                    home.compact()
                case "forget":
                    home.forget_versions()
                case "restart":
                    home.restart()
                case "read":
                    for reader in home.readers[:1]:
                        reader.read(home.path)
                case "join":
                    home.readers.append(Follower())
                    home.readers[-1].read(home.path)
                case point:
                    home.killed(point)
        home.check()


def test_few_files_stay_however_many_batches_are_written(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for _ in range(60):
        home.batch()
        home.compact()

    assert len(stored_files(home.table.snapshot())) < 2 * SMALL.together
    home.forget_versions()
    assert len(list((home.path / "_delta_log").iterdir())) < 25
    assert len(list(home.path.glob("*.parquet"))) < 15
    home.check()


def file(number: int, size: int, partition: str = "ok") -> StoredFile:
    batches = number, number
    return StoredFile(f"batch-{number:08d}-1-0.parquet", size, 1, number, {"v": partition}, batches)


KB = 1 << 10


@given(st.lists(st.sampled_from([KB, 300 * KB, 5000 * KB, 200_000 * KB]), max_size=80))
def test_a_group_is_of_neighbours_and_no_batch_is_cut_in_two(sizes: list[int]) -> None:
    stored = [file(number // 2, size) for number, size in enumerate(sizes)]

    groups = sorted([stored.index(member) for member in group] for group in plan(stored))

    for group in groups:
        assert len(group) >= FileSizes().together
        assert group == list(range(group[0], group[-1] + 1))
        assert sum(sizes[n] for n in group) <= 2 * FileSizes().target
    for before, after in pairwise(groups):
        assert before[-1] < after[0]
        assert after[0] > before[-1] + 1 or before[-1] // 2 < after[0] // 2


def test_a_large_file_is_not_written_again_with_each_small_one() -> None:
    stored = [file(0, 200 << 20), *(file(number, KB) for number in range(1, 17))]

    assert [len(group) for group in plan(stored)] == [16]
    assert plan(stored[:-1]) == ()


def test_files_of_several_partitions_stay_apart() -> None:
    stored = [*(file(n, KB, "late") for n in range(20)), *(file(n, KB) for n in range(20))]

    groups = plan(stored)

    assert [{member.partition["v"] for member in group} for group in groups] == [{"late"}, {"ok"}]


def test_a_partition_without_a_new_file_for_a_day_becomes_one_file() -> None:
    day_ms = 24 * 3_600_000
    over = [file(n, KB, "2026-05-01") for n in range(3)] + [file(3, 3000 * KB, "2026-05-01")]
    today = [replace(file(n, KB, "2026-05-02"), modified_ms=day_ms) for n in range(4, 7)]

    assert plan([*over, *today]) == ()
    [group] = plan([*over, *today], now_ms=day_ms + 100)
    assert list(group) == over
    assert plan(over[:1], now_ms=day_ms + 100) == ()


def test_a_column_that_was_added_later_is_null_in_earlier_rows(tmp_path: Path) -> None:
    for name, columns in ("a", {"n": [1]}), ("b", {"n": [2], "m": ["x"]}):
        pq.write_table(pa.table(columns), tmp_path / f"batch-{ord(name)}-1-0.parquet")
    group = tuple(
        StoredFile(path.name, 1, 1, 1000, {}, None) for path in sorted(tmp_path.glob("*.parquet"))
    )
    (tmp_path / "m").mkdir()

    [written] = rewritten(tmp_path, group, tmp_path / "m")

    assert pq.read_table(written.path).to_pylist() == [{"n": 1, "m": None}, {"n": 2, "m": "x"}]
    assert written.path.stat().st_mtime == 1


def test_what_is_compacted_meanwhile_is_not_compacted_twice(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for _ in range(3):
        home.batch()
    group = stored_files(home.table.snapshot())
    other = FencedTable(home.path, name="t", epoch=1)
    (tmp_path / "m").mkdir()
    [written] = rewritten(home.path, group, tmp_path / "m")
    home.compact()

    assert not other.rewrite(group, {"batches-00000000-00000002-1-9.parquet": written})
    home.check()


def test_an_overtaken_driver_compacts_and_deletes_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for _ in range(12):
        home.batch()
    zombie = home.table
    home.restart()
    before = {path.name for path in home.path.rglob("*")}

    with pytest.raises(OvertakenError):
        cut(zombie, choose_cut(home.path, LITTLE, []).first)
    (tmp_path / "m").mkdir()
    with pytest.raises(OvertakenError):
        compact_all(zombie, tmp_path / "m", SMALL)

    assert before <= {path.name for path in home.path.rglob("*")}
    home.check()


def test_versions_are_kept_as_long_as_declared_and_for_the_reader_behind(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for _ in range(20):
        home.batch()
    now = datetime.now(UTC)
    for version in versions(home.path):
        at = (now - timedelta(days=21 - version)).timestamp()
        os.utime(commit_path(home.path, version), (at, at))
    week = Retention()

    everyone, behind = TableReader("a", "", 21), TableReader("b", "/other", 9)
    assert choose_cut(home.path, week, [], now).first == 11
    assert choose_cut(home.path, week, [everyone], now).waits_for is None
    waiting = choose_cut(home.path, week, [everyone, behind], now)
    assert (waiting.first, waiting.waits_for) == (7, behind)
    assert choose_cut(home.path, week, [TableReader("c", "", -1)], now).first == 0

    cut(home.table, 11)
    assert existing_version(home.path, "t", 11) == 11
    assert facts_of(home.path, version=11).batch == 9
    with raises("UNKNOWN_VERSION", match="has no version 10"):
        existing_version(home.path, "t", 10)
    home.check()


def test_files_that_killed_drivers_left_are_deleted_and_no_others(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.batch()
    left = home.path / "batch-00000009-1-0000.parquet"
    pq.write_table(pa.table({"n": [1]}), left)
    home.restart()
    mine = home.path / "batch-00000009-2-0000.parquet"
    pq.write_table(pa.table({"n": [1]}), mine)

    assert delete_orphans(home.table).files == 0
    assert delete_orphans(home.table, timedelta(0)).files == 1

    assert (left.exists(), mine.exists()) == (False, True)
    home.check()


@pytest.mark.parametrize("name", ["plain", "My Project", "ümlaut", "100%", "link"])
def test_no_file_of_a_table_is_deleted_whatever_its_path_is(name: str, tmp_path: Path) -> None:
    if name == "link":
        (tmp_path / "there").mkdir()
        (tmp_path / name).symlink_to(tmp_path / "there")
    home = Home(tmp_path / name)
    for _ in range(20):
        home.batch()
    home.forget_versions()
    home.restart()

    assert first_version(home.path) > 0
    assert delete_orphans(home.table, timedelta(0)).files == 0
    home.check()


def test_a_driver_that_was_overtaken_while_it_looked_for_files_deletes_none(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    for _ in range(12):
        home.batch()
    zombie = home.table
    home.restart()
    home.compact()

    with pytest.raises(OvertakenError):
        delete_orphans(zombie, timedelta(0))
    home.check()


def test_rows_older_than_they_are_kept_go_and_the_counts_stay(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for number in range(3):
        staged = files(tmp_path / "s", [("a", number)])
        at = 1000 * (number + 1)
        os.utime(staged[0].path, (at, at))
        home.table.append(staged, Facts("q", batch=number).plus({"written": number + 1}))
    follower = Follower()
    follower.read(home.path)

    gone = drop_rows(home.table, timedelta(seconds=10), datetime.fromtimestamp(2500 + 10, UTC))

    assert gone == 2
    assert rows_of(home.path) == [("a", 2)]
    assert facts_of(home.path).totals == {"written": 3}
    follower.read(home.path)
    assert follower.rows == [0, 1, 2]


def test_a_file_that_is_deleted_while_sizes_are_added_up_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept.parquet").write_bytes(b"1234")
    listed: list[tuple[str, list[str], list[str]]] = [
        (str(tmp_path), [], ["deleted.parquet", "kept.parquet"])
    ]
    monkeypatch.setattr("os.walk", lambda _: listed)

    assert list(lengths_under(tmp_path)) == [4]

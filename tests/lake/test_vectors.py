from __future__ import annotations

import json
import struct
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, QueryBuilder
from deltalake.exceptions import CommitFailedError
from hypothesis import example, given, settings, strategies as st
from tests.lake.test_delta import SCHEMA, opened

from millstream.crash import armed
from millstream.errors import OvertakenError
from millstream.lake.checksum import write_checksum
from millstream.lake.commit import write_commit
from millstream.lake.compaction import FileSizes, compact, compact_all, plan
from millstream.lake.deletion_vector import (
    UnreadableVectorError,
    Vector,
    decode,
    encode,
    write_vectors,
)
from millstream.lake.delta import FencedTable
from millstream.lake.files import DataFile
from millstream.lake.home import Home
from millstream.lake.key_index import KeyIndex, can_index
from millstream.lake.live_files import LiveFiles
from millstream.lake.log import Facts, commit_path, facts_of, files_added, first_version, versions
from millstream.lake.retention import Retention, choose_cut, cut, delete_orphans
from millstream.lake.rows import read_rows
from millstream.sql.duckdb_query import DuckDBEngine
from millstream.sql.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL = FileSizes(together=3, most_deleted=0.3)
OFTEN = {"delta.checkpointInterval": "4", "delta.enableChangeDataFeed": "true"}
POINTS = ("files_moved", "deletions_written", "files_rewritten", "rewrite_commit")
CUTS = ("history_closed", "old_files_deleted")

Key = str | None


class KilledError(Exception):
    """The driver dies here."""


@dataclass
class Keyed:
    """An update table, and what it must hold."""

    folder: Path
    epoch: int = 1
    batch: int = -1
    held: list[dict[Key, int]] = field(default_factory=list)
    """After each batch."""

    def __post_init__(self) -> None:
        Home.at(self.folder).prepare("a", sources=[])
        (self.folder / "m").mkdir()
        self.table = opened(self.path, self.epoch, properties=OFTEN)
        self.write({"k0": -1}, [])
        self.table.prepare(["k"])
        self.table.delete_in_place(["k"])

    @property
    def path(self) -> Path:
        return Home.at(self.folder).table("t")

    @property
    def now(self) -> dict[Key, int]:
        return self.held[-1] if self.held else {}

    def write(self, rows: dict[Key, int], gone: Sequence[Key], dies_at: str = "") -> None:
        """Write a batch; a driver that is killed is followed by one that does it again."""
        gone = [key for key in gone if key not in rows]
        self.batch += 1
        after = {key: n for key, n in self.now.items() if key not in gone} | rows
        self.held.append(after)
        try:
            with armed(self.folder, self._killer(dies_at)):
                self._upsert(rows, gone)
        except KilledError:
            self.restart()
            self._upsert(rows, gone)

    def restart(self) -> None:
        self.epoch += 1
        self.table = opened(self.path, self.epoch, properties=OFTEN)

    def compact(self, dies_at: str = "") -> None:
        try:
            with armed(self.folder, self._killer(dies_at)):
                compact_all(self.table, self.folder / "m", SMALL)
        except KilledError:
            self.restart()

    def compact_while_written(self, rows: dict[Key, int], gone: Sequence[Key]) -> None:
        """Have a batch committed between the copying of files and the commit that names it."""
        upkeep = FencedTable(self.path, name="t", epoch=self.epoch)

        def between(act: Any) -> bool:
            self.write(rows, gone)
            return bool(act())

        for group in plan(upkeep.stored(), SMALL)[:1]:
            compact(upkeep, group, self.folder / "m", between)

    def forget_versions(self, dies_at: str = "") -> None:
        retention = Retention(versions=timedelta(days=1), most_versions=3)
        try:
            with armed(self.folder, self._killer(dies_at)):
                cut(self.table, choose_cut(self.path, retention, ()).first)
                delete_orphans(self.table, timedelta(0))
        except KilledError:
            self.restart()

    def check(self) -> None:
        expected = sorted(self.now.items(), key=str)
        assert pairs(read_rows(self.path)) == expected
        assert pairs(by_delta_rs(DeltaTable(str(self.path)))) == expected
        assert facts_of(self.path).batch == self.batch
        for version in range(max(first_version(self.path), 1), versions(self.path).stop):
            batch = facts_of(self.path, version=version).batch
            then = self.held[batch] if batch >= 0 else {}
            old = by_delta_rs(DeltaTable(str(self.path), version=version))
            assert pairs(old) == sorted(then.items(), key=str)

    def _upsert(self, rows: dict[Key, int], gone: Sequence[Key]) -> None:
        staged = staged_rows(self.folder / "s", rows) if rows else []
        keys = pa.table({"k": pa.array(gone, pa.string())}) if gone else None
        self.table.upsert(staged, ["k"], Facts("q", batch=self.batch), gone=keys)

    def _killer(self, point: str) -> Any:
        def kill(reached: str, query: str, batch: int) -> None:
            if reached == point:
                raise KilledError

        return kill


def staged_rows(place: Path, rows: dict[Key, int]) -> list[DataFile]:
    place.mkdir(parents=True, exist_ok=True)
    columns = {"k": pa.array(rows, pa.string()), "n": pa.array(rows.values(), pa.int64())}
    pq.write_table(pa.table(columns), place / "part.parquet")
    return [DataFile.read(place / "part.parquet", {})]


def pairs(rows: pa.Table) -> list[tuple[Key, int]]:
    return sorted(((row["k"], row["n"]) for row in rows.to_pylist()), key=str)


def by_delta_rs(table: DeltaTable) -> pa.Table:
    asked = QueryBuilder().register("rows", table).execute("SELECT k, n FROM rows")
    return pa.table(asked.read_all())


KEYS = st.sampled_from([None, "", *(f"k{number}" for number in range(12))])
ROWS = st.dictionaries(KEYS, st.integers(0, 99), max_size=8)
GONE = st.lists(KEYS, max_size=3, unique=True)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), ROWS, GONE, st.sampled_from(["", "", "", *POINTS[:2]])),
        st.tuples(st.just("write"), ROWS, GONE, st.just("")),
        st.tuples(st.just("compact"), st.sampled_from(["", *POINTS[2:]])),
        st.tuples(st.just("compact_while_written"), ROWS, GONE),
        st.tuples(st.just("forget_versions"), st.sampled_from(["", *CUTS])),
        st.tuples(st.just("restart")),
    ),
    max_size=25,
)


@settings(max_examples=25)
@given(ACTS)
@example([("write", {f"k{n}": n for n in range(9)}, [], ""), ("write", {"k1": 5}, ["k2"], "")])
def test_whatever_is_written_compacted_and_killed_each_version_is_that_of_a_merge(
    acts: list[tuple[Any, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        keyed = Keyed(Path(folder))
        for name, *values in acts:
            getattr(keyed, name)(*values)
        keyed.check()


@given(st.sets(st.integers(0, 300_000)), st.booleans())
def test_positions_are_read_as_they_were_written(positions: set[int], many: bool) -> None:
    more = set(range(65_000, 75_000)) if many else set()
    wanted = np.array(sorted(positions | more), np.uint32)

    assert (decode(encode(wanted)) == wanted).all()


def test_positions_in_runs_which_other_programs_write_are_read() -> None:
    runs = struct.pack("<HHHHH", 2, 3, 1, 10, 0)
    heads = struct.pack("<HHHH", 0, 2, 1, 1)
    bitmap = struct.pack("<I", 12347 | 1 << 16) + b"\x01" + heads + runs + struct.pack("<HH", 7, 9)

    found = decode(struct.pack("<IQI", 1681511377, 1, 0) + bitmap)

    assert found.tolist() == [3, 4, 10, 65_543, 65_545]


def test_a_vector_in_the_log_is_read_as_the_protocol_gives_it() -> None:
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"

    assert Vector("i", text, 44, 6).read(Path()).tolist() == [3, 4, 7, 11, 18, 29]


def test_a_damaged_vector_is_never_read_as_another(tmp_path: Path) -> None:
    [vector] = write_vectors(tmp_path, {"a": np.array([1, 2], np.uint32)}).values()
    file = vector.file(tmp_path)
    assert file is not None
    content = bytearray(file.read_bytes())
    content[-6] ^= 1
    file.write_bytes(content)

    with pytest.raises(UnreadableVectorError):
        vector.read(tmp_path)


def test_keys_that_look_alike_are_not_the_same(tmp_path: Path) -> None:
    kinds = {"a": "string", "b": "string", "n": "long", "at": "timestamp", "raw": "binary"}
    index = KeyIndex(tmp_path, "id", ["a", "b", "n", "at", "raw"], kinds)
    when = pa.array([0, 1, 0, 0, 0, 0, None, 0, 0, 0, 0], pa.timestamp("us", tz="UTC"))
    rows = pa.table(
        {
            "a": ["a", "a", "ab", "a", None, "", "a", "a\0", "á", "-", "0:"],
            "b": ["bc", "bc", "c", "bc", "bc", "bc", "bc", "bc", "bc", "bc", "bc"],
            "n": [1, 1, 1, 11, 1, 1, 1, 1, 1, 1, 1],
            "at": when,
            "raw": pa.array([b"\x00"] * 3 + [b"\x01"] + [b"\x00"] * 7),
        }
    )

    hashes = index.hashes_of(rows)

    assert len({*zip(hashes.high.tolist(), hashes.low.tolist(), strict=True)}) == rows.num_rows


def test_a_torn_index_is_made_again(tmp_path: Path) -> None:
    count = 70_000
    pq.write_table(pa.table({"k": [f"k{n}" for n in range(count)]}), tmp_path / "f.parquet")
    made = KeyIndex(tmp_path, "id", ["k"], {"k": "string"}).of("f.parquet", count)
    [stored] = (tmp_path / "_index").iterdir()
    wanted = made.rows.tolist()
    content = bytearray(stored.read_bytes())
    content[-1] ^= 1
    stored.unlink()
    stored.write_bytes(content)

    index = KeyIndex(tmp_path, "id", ["k"], {"k": "string"})
    again = index.of("f.parquet", count)

    assert again.rows.tolist() == wanted
    asked = index.hashes_of(pa.table({"k": ["k7", "nobody", "k69999"]}))
    assert again.find(asked).tolist() == [7, 69_999]


def test_keys_whose_equal_values_may_differ_in_text_stay_merged(tmp_path: Path) -> None:
    assert can_index(["a", "b"], {"a": "decimal(10,2)", "b": "date"})
    assert not can_index(["a"], {"a": "double"})
    assert not can_index(["a"], {"a": "{'type': 'struct'}"})


def test_the_change_feed_has_the_row_that_was_and_the_row_that_is(tmp_path: Path) -> None:
    keyed = Keyed(tmp_path)
    keyed.write({"k0": 1, "k1": 2}, [])
    begin = keyed.table.version + 1

    keyed.write({"k1": 3}, ["k0"])

    feed = DeltaTable(str(keyed.path)).load_cdf(starting_version=begin)
    found = [(r["_change_type"], r["k"], r["n"]) for r in pa.table(feed.read_all()).to_pylist()]
    assert sorted(found) == [("delete", "k0", 1), ("delete", "k1", 2), ("insert", "k1", 3)]


def test_a_batch_writes_its_rows_and_no_file_again(tmp_path: Path) -> None:
    keyed = Keyed(tmp_path)
    keyed.write({f"k{n}": n for n in range(1_000)}, [])
    before = {*keyed.path.glob("*.parquet")}

    keyed.write({"k5": -5}, [])

    [new] = {*keyed.path.glob("*.parquet")} - before
    assert pq.read_metadata(new).num_rows == 1
    assert sum(file.deleted for file in keyed.table.stored()) == 1
    keyed.check()


def test_a_driver_that_has_the_table_open_deletes_in_place_once_it_is_prepared(
    tmp_path: Path,
) -> None:
    table = opened(tmp_path / "t", 1, properties=OFTEN)
    table.upsert(staged_rows(tmp_path / "s", {"a": 1, "b": 2}), ["k"], Facts("q", batch=0))
    upkeep = FencedTable(table.path, name="t", epoch=1)
    upkeep.prepare(["k"])
    upkeep.delete_in_place(["k"])

    table.upsert(staged_rows(tmp_path / "s", {"b": 3}), ["k"], Facts("q", batch=1))

    assert [(file.rows, file.deleted) for file in table.stored()] == [(2, 1), (1, 0)]


def test_a_table_is_prepared_from_its_checkpoint_as_from_its_commits(tmp_path: Path) -> None:
    keyed = Keyed(tmp_path)
    keyed.write({"a": 1, "b": 2}, [])
    keyed.write({"b": 3}, [])
    read = LiveFiles.at(keyed.path, keyed.table.version)
    keyed.table.checkpoint()

    again = LiveFiles.at(keyed.path, keyed.table.version)

    assert (again.metadata, again.counts()) == (read.metadata, read.counts())
    assert {**again.protocol} == {**read.protocol}
    keyed.restart()
    keyed.table.delete_in_place(["k"])
    keyed.write({"a": 4}, [])
    keyed.check()


def test_a_batch_too_large_for_memory_is_indexed_from_its_file(tmp_path: Path) -> None:
    keyed = Keyed(tmp_path)
    keyed.write({f"k{n}": n for n in range(70_000)}, [])
    assert not (keyed.path / "_index").exists()

    keyed.write({"k69999": 1, "k70000": 2}, ["k5"])
    keyed.write({"k69999": 3, "k6": 4}, [])

    assert len([*(keyed.path / "_index").iterdir()]) == 1
    keyed.check()
    keyed.compact()
    keyed.check()


@pytest.mark.parametrize("name", ["home", "My Home", "ümlaut", "link"])
def test_query_leaves_deleted_rows_out_now_and_as_it_was(name: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    place = tmp_path / name
    if name == "link":
        place.symlink_to(tmp_path / "there")
    place.mkdir(exist_ok=True)
    keyed = Keyed(place)
    keyed.write({"a": 1, "b": 2, "c": 3}, [])
    version = keyed.table.version
    keyed.write({"b": 20}, ["a"])

    def ask(text: str) -> list[tuple[Any, ...]]:
        engine = DuckDBEngine(Home.at(place), Limits())
        return sorted(engine.run(text, lambda answer: [r for b in answer.batches() for r in b]))

    assert ask("SELECT k, n FROM t") == [("b", 20), ("c", 3), ("k0", -1)]
    assert ask("SELECT count(*) AS n, sum(n) AS s FROM t") == [(3, 22)]
    then = ask(f"SELECT k, n FROM t VERSION AS OF {version}")
    assert then == [("a", 1), ("b", 2), ("c", 3), ("k0", -1)]


def test_a_table_of_deleted_rows_may_be_replaced_merged_and_given_columns(tmp_path: Path) -> None:
    keyed = Keyed(tmp_path)
    keyed.write({"a": 1, "b": 2}, [])
    keyed.write({"b": 3}, [])
    fields = json.loads(SCHEMA)
    added = {"type": "struct", "fields": [{**fields["fields"][1], "name": "m"}]}
    keyed.table.add_columns(json.dumps(added))

    # These rows lack the column: a merge keeps what it has.
    keyed.write({"a": 5}, [])
    keyed.check()
    keyed.table.replace(staged_rows(tmp_path / "s", {"z": 9}), Facts("q", batch=9))

    assert pairs(read_rows(keyed.path, ["k", "n"])) == [("z", 9)]
    assert pairs(by_delta_rs(DeltaTable(str(keyed.path)))) == [("z", 9)]


def test_a_replaced_table_has_no_file_left_for_readers_that_know_vectors(tmp_path: Path) -> None:
    keyed = Keyed(tmp_path)
    keyed.write({"a": 1, "b": 2}, [])
    keyed.write({"b": 3}, [])
    before = {(path, vector_of(add)) for path, add in live_of(keyed.table).items()}

    keyed.table.replace(staged_rows(tmp_path / "s", {"z": 9}), Facts("q", batch=9))

    text = commit_path(keyed.path, keyed.table.version).read_text()
    removed = [json.loads(line)["remove"] for line in text.splitlines() if '"remove"' in line[:12]]
    assert {(action["path"], vector_of(action)) for action in removed} == before


def live_of(table: FencedTable) -> dict[str, Any]:
    return dict(table._vectors.files(table.version).adds)


def vector_of(action: Any) -> str | None:
    vector = action.get("deletionVector")
    return None if vector is None else f"{vector['pathOrInlineDv']}@{vector.get('offset')}"


def test_of_commits_of_one_version_one_is_made_and_the_others_are_refused(tmp_path: Path) -> None:
    keyed = Keyed(tmp_path)
    version, made = keyed.table.version + 1, list[str]()
    start = threading.Barrier(8)

    def commit(name: str) -> None:
        properties = CommitProperties({"by": name}, app_transactions=[])
        start.wait()
        with suppress(CommitFailedError):
            write_commit(keyed.path, version, "WRITE", [], properties)
            made.append(name)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(commit, map(str, range(8))))

    [name] = made
    assert json.loads(commit_path(keyed.path, version).read_text())["commitInfo"]["by"] == name
    assert not [*(keyed.path / "_delta_log").glob(".*.draft")]


def test_an_overtaken_driver_deletes_nothing(tmp_path: Path) -> None:
    keyed = Keyed(tmp_path)
    keyed.write({"a": 1}, [])
    zombie = keyed.table
    keyed.restart()

    with pytest.raises(OvertakenError):
        zombie.upsert(staged_rows(tmp_path / "z", {"a": 9}), ["k"], Facts("q", batch=9))

    keyed.check()


def test_a_takeover_between_looking_and_committing_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed = Keyed(tmp_path)
    keyed.write({"a": 1}, [])
    zombie, upserted = keyed.table, keyed.table._vectors.upserted

    def lose_then_write(*of: Any) -> Any:
        keyed.restart()
        return upserted(*of)

    monkeypatch.setattr(zombie._vectors, "upserted", lose_then_write)

    with pytest.raises(OvertakenError):
        zombie.upsert(staged_rows(tmp_path / "z", {"a": 9}), ["k"], Facts("q", batch=9))

    keyed.check()


def test_another_program_that_commits_meanwhile_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed = Keyed(tmp_path)
    keyed.write({"a": 1, "b": 2, "c": 3}, [])
    keyed.write({"b": 4}, [])
    upserted, done = keyed.table._vectors.upserted, list[object]()

    def compact_once(*of: Any) -> Any:
        actions = upserted(*of)
        if not done:
            done.append(DeltaTable(str(keyed.path)).optimize.compact())
        return actions

    monkeypatch.setattr(keyed.table._vectors, "upserted", compact_once)
    keyed.write({"a": 7}, ["c"])

    keyed.check()


def test_the_checksum_counts_a_file_with_deletions_once(tmp_path: Path) -> None:
    keyed = Keyed(tmp_path)
    keyed.write({"a": 1, "b": 2}, [])
    keyed.write({"b": 3}, [])
    write_checksum(keyed.path / "_delta_log", keyed.table.version)

    content = json.loads(
        commit_path(keyed.path, keyed.table.version).with_suffix(".crc").read_text()
    )

    assert content["numFiles"] == len(keyed.table.stored())
    assert content["tableSizeBytes"] == sum(file.size for file in keyed.table.stored())


def test_a_reader_of_added_files_reads_no_row_of_compaction(tmp_path: Path) -> None:
    keyed = Keyed(tmp_path)
    for number in range(4):
        keyed.write({"a": number, f"b{number}": number}, [])
    before = keyed.table.version

    keyed.compact()

    assert keyed.table.version > before
    assert all(files_added(keyed.path, v) == () for v in range(before + 1, keyed.table.version + 1))
    keyed.check()

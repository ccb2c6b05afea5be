"""What becomes of a staged batch on its way into stores, without Spark."""

from __future__ import annotations

import itertools
import json
import shutil
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType
from tests.faults import raises
from tests.systems.stores import rows_in

import millstream as ms
from millstream.checkpoint import CheckpointLog
from millstream.crash import armed
from millstream.errors import CheckpointDamagedError, Location, StoreAheadError, StoreRestoredError
from millstream.lake.change_log import ChangeLog
from millstream.lake.files import DataFile
from millstream.lake.home import Home
from millstream.lake.staged_batches import StagedBatches
from millstream.lake.staging import Staged
from millstream.model.dataset import Serve
from millstream.serve.changes import Changes
from millstream.serve.serve_sink import ServeSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NUMBERS = itertools.count()
QUERY = "5f0c1c1e-0000-4000-8000-000000000000"
SCHEMA = StructType([StructField("id", LongType()), StructField("text", StringType())])


ENTRIES = {
    "offsets": 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":0}\n{"orders":{"0":1}}',
    "commits": 'v1\n{"nextBatchWatermarkMs":0}',
}


class Place:
    """A home with the checkpoint of one query, as Spark would have left it."""

    def __init__(self, folder: Path) -> None:
        self.home = Home.at(folder / "home")
        self.home.prepare("shop", sources=[])
        self.log = CheckpointLog(self.home.checkpoint("items"))
        for name in ("offsets", "commits"):
            (self.log.path / name).mkdir(parents=True)
        (self.log.path / "metadata").write_text(json.dumps({"id": QUERY}))
        self.opened: list[ServeSink] = []
        self.differences: list[int] = []

    def served(self, *sinks: Any, epoch: int = 1) -> ServeSink:
        serve = Serve("items", ("raw",), lambda raw: raw, Location("app.py", 9), sinks, "update")
        frame: Any = SimpleNamespace(schema=SCHEMA)
        lease: Any = SimpleNamespace(home=self.home, epoch=epoch)
        served = ServeSink(serve, "shop", frame, self.log, lease, self.differences.append)
        self.opened.append(served)
        return served

    def staged(self, *rows: tuple[int | None, str], digest: str = "digest") -> Staged:
        folder = self.home.staging("items")
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "part.parquet"
        pq.write_table(pa.table({"id": [r[0] for r in rows], "text": [r[1] for r in rows]}), file)
        return Staged((DataFile.read(file, {}),), {"_rows": len(rows)}, digest)

    def plan(self, batch: int, *, committed: bool = False) -> None:
        for name in ("offsets", "commits") if committed else ("offsets",):
            (self.log.path / name / str(batch)).write_text(ENTRIES[name])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    for served in made.opened:
        served.close()


@pytest.fixture(params=["files", pytest.param("servers", marks=pytest.mark.services)])
def sinks(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    """Two stores: of SQLite and Delta, or of Postgres and Redis."""
    if request.param == "files":
        one = ms.SQLite(str(tmp_path / "one.db"), key="id")
        return one, ms.DeltaPath(str(tmp_path / "two"), key="id")
    name = f"served_{next(NUMBERS)}"
    postgres, redis = (request.getfixturevalue(server) for server in ("postgres", "redis"))
    return ms.Postgres(postgres.dsn, name, key="id"), ms.Redis(redis.url, "id", name)


def test_a_driver_that_dies_between_two_stores_gives_the_second_what_the_first_has(
    place: Place, sinks: tuple[Any, Any]
) -> None:
    served, died = place.served(*sinks), list[str]()

    def die(point: str, query: str, batch: int) -> None:
        if point == "store_commit" and not died:
            died.append(query)
            raise KeyboardInterrupt

    with armed(place.home.path, die), pytest.raises(KeyboardInterrupt):
        served.commit(place.staged((1, "a")), 0, QUERY)
    assert (len(rows_in(sinks[0])), len(rows_in(sinks[1]))) == (1, 0)
    place.plan(0)
    later = place.served(*sinks, epoch=2)
    later.check_against_checkpoint()
    assert later.facts.batch == -1
    later.commit(place.staged((1, "a")), 0, QUERY)

    assert rows_in(sinks[0]) == rows_in(sinks[1]) == [{"id": 1, "text": "a"}]
    assert place.differences == []
    assert later.facts.totals == {"input": 1, "written": 1, "quarantined": 0}


def test_a_replay_with_other_rows_is_reported_and_changes_nothing(
    place: Place, sinks: tuple[Any, Any]
) -> None:
    served = place.served(sinks[0])
    served.commit(place.staged((1, "a")), 0, QUERY)

    served.commit(place.staged((1, "b"), digest="another"), 0, QUERY)

    assert rows_in(sinks[0]) == [{"id": 1, "text": "a"}]
    assert place.differences == [0]


def test_refused_rows_are_quarantined_once_for_each_store_whenever_the_driver_dies(
    place: Place, sinks: tuple[Any, Any]
) -> None:
    place.plan(0)
    for epoch, point in enumerate(["quarantine_commit", "store_written", "store_commit", ""], 1):
        served = place.served(*sinks, epoch=epoch)

        def die(here: str, query: str, batch: int, at: str = point) -> None:
            if here == at:
                raise KeyboardInterrupt

        with armed(place.home.path, die):
            if point:
                with pytest.raises(KeyboardInterrupt):
                    served.commit(place.staged((1, "a"), (None, "b")), 0, QUERY)
            else:
                served.commit(place.staged((1, "a"), (None, "b")), 0, QUERY)
    served.commit(place.staged((None, "c")), 1, QUERY)

    from deltalake import DeltaTable

    refused = DeltaTable(str(place.home.quarantine("items"))).to_pyarrow_table().to_pylist()
    names = [sink.place("items").name for sink in sinks]
    assert sorted((r["text"], r["_store"]) for r in refused) == sorted(
        (text, name) for text in "bc" for name in names
    )
    assert {r["_reason"] for r in refused} == {"a column of the key (id) is null"}
    assert served.facts.totals == {"input": 3, "written": 1, "quarantined": 2}


def test_text_that_is_not_utf_8_is_quarantined_as_it_is(
    place: Place, sinks: tuple[Any, Any]
) -> None:
    staged = place.staged((1, "a"), (2, "??"), (3, "c"))
    file = staged.files[0].path
    file.write_bytes(b"")
    found = pa.array([b"a", b"\xff\xfe", b"c"], pa.binary())
    odd = pa.Array.from_buffers(pa.string(), 3, found.buffers())
    pq.write_table(pa.table({"id": pa.array([1, 2, 3]), "text": odd}), file)
    served = place.served(sinks[0])

    served.commit(staged, 0, QUERY)

    assert [row["id"] for row in rows_in(sinks[0])] == [1, 3]
    assert served.facts.totals == {"input": 3, "written": 2, "quarantined": 1}
    from deltalake import DeltaTable

    kept = DeltaTable(str(place.home.quarantine("items"))).to_pyarrow_table()
    assert kept.column("id").to_pylist() == [2]
    assert kept.column("text").cast(pa.binary()).to_pylist() == [b"\xff\xfe"]


def test_two_rows_for_one_key_stop_the_batch_and_rows_without_a_key_do_not(
    place: Place, sinks: tuple[Any, Any]
) -> None:
    served = place.served(sinks[0])

    with raises("KEY_NOT_UNIQUE"):
        served.commit(place.staged((1, "a"), (1, "b")), 0, QUERY)
    served.commit(place.staged((None, "a"), (None, "b"), (1, "c")), 0, QUERY)

    assert rows_in(sinks[0]) == [{"id": 1, "text": "c"}]


@pytest.mark.parametrize(
    ("made", "remedy"),
    [
        (
            lambda store: ms.SQLite(f"{store}/one.db", key="id"),
            "DROP TABLE \"items\"; DELETE FROM millstream_fence WHERE target = 'items'",
        ),
        (lambda store: ms.DeltaPath(f"{store}/delta", key="id"), "rm -r "),
        (lambda store: ms.FileSink(f"{store}/files"), "files/_millstream/items.*`"),
    ],
    ids=["sqlite", "delta", "files"],
)
def test_a_restored_store_and_a_reset_checkpoint_are_refused_with_the_remedy(
    place: Place, tmp_path: Path, made: Callable[[Path], Any], remedy: str
) -> None:
    store, backup = tmp_path / "store", tmp_path / "backup"
    store.mkdir()
    sink = made(store)
    for batch in range(3):
        served = place.served(sink)
        served.commit(place.staged((batch, "b")), batch, QUERY)
        served.close()
        place.plan(batch, committed=True)
        if batch == 0:
            shutil.copytree(store, backup)
    shutil.rmtree(store)
    shutil.copytree(backup, store)

    with pytest.raises(StoreRestoredError, match="holds batches up to 0, but the checkpoint has"):
        place.served(sink)
    (place.log.path / "metadata").write_text(json.dumps({"id": QUERY.replace("5", "6")}))
    with pytest.raises(StoreAheadError, match="of another checkpoint") as reported:
        place.served(sink)
    assert remedy in str(reported.value)


def test_a_damaged_checkpoint_is_reported_as_the_cause_and_not_the_store(
    place: Place, sinks: tuple[Any, Any]
) -> None:
    at_work = place.served(sinks[0], epoch=5)
    at_work.commit(place.staged((1, "a")), 0, QUERY)
    place.plan(0, committed=True)
    (place.log.path / "metadata").unlink()

    with pytest.raises(CheckpointDamagedError, match="metadata"):
        place.served(sinks[0], epoch=6)

    at_work.commit(place.staged((2, "b")), 1, QUERY)
    assert len(rows_in(sinks[0])) == 2


def test_what_was_computed_first_is_what_is_delivered(place: Place) -> None:
    batches = StagedBatches(place.home.staging("items"))
    staged = place.staged((1, "a"))
    assert batches.kept(QUERY, 7, ["id", "text"]) is None

    batches.keep(staged, QUERY, 7, ["id", "text"])

    kept = batches.kept(QUERY, 7, ["id", "text"])
    assert kept is not None
    assert (kept.digest, kept.rows, kept.seen) == ("digest", 1, {"_rows": 1})
    assert batches.kept(QUERY, 8, ["id", "text"]) is None
    assert batches.kept("another", 7, ["id", "text"]) is None
    assert batches.kept(QUERY, 7, ["id", "text", "more"]) is None


def test_an_answer_with_two_rows_for_a_key_reports_no_change(place: Place) -> None:
    log = ChangeLog.begin(place.home, "items")
    served: Any = SimpleNamespace(
        key=("id",),
        serve=SimpleNamespace(name="items", at=Location("app.py", 9)),
        batches=log.batches,
        has_changes=True,
        mark=lambda frame: frame,
        compute=lambda frame, folder: place.staged((1, "a"), (1, "b")),
    )

    with raises("KEY_NOT_UNIQUE"):
        Changes(served, log).stage(SimpleNamespace(columns=["id", "text"]), 0)  # type: ignore[arg-type]

    assert (log.committed, log.planned, len(log.query_id)) == (-1, -1, 32)


def test_a_function_is_handed_a_batch_again_under_the_same_id_until_that_is_noted(
    place: Place,
) -> None:
    handed: list[tuple[str, int]] = []
    sink = ms.sink(lambda rows, batch: handed.append((batch.id, rows.num_rows)), name="put")
    place.plan(0)
    for epoch, point in enumerate(["store_written", "store_commit", ""], 1):
        served = place.served(sink, epoch=epoch)

        def die(here: str, *_: object, point: str = point) -> None:
            if here == point:
                raise KeyboardInterrupt

        with armed(place.home.path, die), suppress(KeyboardInterrupt):
            served.commit(place.staged((1, "a"), (2, "b")), 0, QUERY)
    place.plan(0, committed=True)
    served.check_against_checkpoint()
    served.commit(place.staged((3, "c")), 1, QUERY)

    first, second = f"shop/items/{QUERY}/0", f"shop/items/{QUERY}/1"
    assert handed == [(first, 2), (first, 2), (second, 1)]
    assert served.facts.totals == {"input": 3, "written": 3, "quarantined": 0}
    (place.home.sinks("items") / "put.json").unlink()
    with pytest.raises(StoreRestoredError, match="function 'put' of 'items' holds no batch"):
        served.check_against_checkpoint()

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.damage import Case, Judge, Sweep, cases, chosen
from tests.damaged import finished
from tests.faults import raises
from tests.graphs import graph, serve, source, table, view

from millstream.checkpoint.checksum import write_sealed
from millstream.checkpoint.entry import CommitEntry, FileRead, Offsets
from millstream.checkpoint.health import examine
from millstream.errors import CheckpointDamagedError
from millstream.lake.delta import FencedTable
from millstream.lake.home import Home
from millstream.lake.lease import Lease
from millstream.lake.log import Facts
from millstream.repair.repair import rebuild, repair
from millstream.systems.files.source import Files
from millstream.systems.kafka.settings import Kafka
from millstream.systems.rate.source import Rate

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.damage import Finished

    from millstream.model.graph import Graph

ID = "e524ad20-5a09-4b60-b0eb-5a0bd2b5fcfd"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
SHOP = graph(source("orders", connector=Files("in")), table("paid", "orders"), table("by", "paid"))


def landed(home: Home, *batches: dict[str, int]) -> None:
    """Land batches: where their rows came from, and the last position there."""
    rows = [
        {"_batch": n, "_origin": origin, "_position": at, "_arrived_at": NOON, "_verdict": "ok"}
        for n, batch in enumerate(batches)
        for origin, at in batch.items()
    ]
    write_deltalake(str(home.table("orders")), pa.Table.from_pylist(rows))
    commit(home, "orders", len(batches) - 1)


def commit(home: Home, name: str, batch: int, query_id: str = ID) -> None:
    FencedTable.create(home.table(name), schema=SCHEMA)
    facts = replace(Facts(), query_id=query_id, batch=batch)
    FencedTable(home.table(name), name=name, epoch=1).append([], facts)


def checkpoint(home: Home, name: str, ends: list[Any], *, done: int | None = None) -> Path:
    """Write the checkpoint of a query without state, as Spark would."""
    path = home.checkpoint(name)
    write_sealed(path / "metadata", json.dumps({"id": ID}))
    for n, end in enumerate(ends):
        offsets = Offsets(0, 1000 + n, (json.dumps(end, separators=(",", ":")),), {"a": "b"})
        write_sealed(path / "offsets" / str(n), offsets.to_text())
        if done is None or n <= done:
            write_sealed(path / "commits" / str(n), CommitEntry(0).to_text())
    return path


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A shop that has read three files, one a batch, and written one table."""
    home = Home.at(tmp_path / "home")
    home.prepare("shop", sources=["orders"])
    for n in range(4):
        (tmp_path / f"{n} %.json").touch()
    landed(home, *({f"{tmp_path}/{n} %.json": 4} for n in range(3)))
    path = checkpoint(home, "orders", [{"logOffset": n} for n in range(3)])
    for n in range(3):
        write_sealed(path / "sources" / "0" / str(n), entry(tmp_path, n))
    commit(home, "paid", 2)
    checkpoint(home, "paid", [{"reservoirVersion": n} for n in range(3)])
    return home


def entry(folder: Path, number: int) -> str:
    file = folder / f"{number} %.json"
    stamp = int(file.stat().st_mtime * 1000)
    return f"v1\n{FileRead(f'file://{folder}/{number}%20%25.json', stamp, number).to_line()}"


def offsets(home: Home, query: str, batch: int) -> Offsets:
    return Offsets.parse((home.checkpoint(query) / "offsets" / str(batch)).read_bytes())


def damage(home: Home) -> list[str]:
    return [f.file for c in examine(home).values() for f in c.damage]


def done(home: Home, graph: Graph = SHOP, *, agreed: bool = False) -> list[str]:
    """Repair; give what was done, without the names of the checkpoints."""
    found = repair(graph, home, agreed=agreed).remedies
    assert damage(home) == []
    return [remedy.what.removeprefix(f"checkpoints/{remedy.query}/") for remedy in found]


def test_a_sound_home_is_left_alone(home: Home) -> None:
    assert done(home) == []
    assert not (home.path / "aside").exists()


def test_metadata_is_written_again_with_the_identity_the_table_knows(home: Home) -> None:
    file = home.checkpoint("paid") / "metadata"
    file.write_text('{"id": "anoth')

    assert done(home) == ["metadata: written again, with the identity that the table knows"]
    assert json.loads(file.read_text()) == {"id": ID}
    [kept] = (home.path / "aside").glob("*/checkpoints/paid/metadata")
    assert kept.read_text() == '{"id": "anoth'


def test_a_damaged_last_commit_is_taken_away_for_spark_to_replay(home: Home) -> None:
    file = home.checkpoint("paid") / "commits" / "2"
    file.write_bytes(b"")

    assert done(home) == [
        "commits/2: Spark does batch 2 once more, and the table, which has it, skips it"
    ]
    assert not file.exists()


def test_commits_that_are_gone_are_written_again_for_a_query_without_state(home: Home) -> None:
    for file in (home.checkpoint("orders") / "commits").iterdir():
        file.unlink()

    assert done(home) == ["commits/2: written again: the table holds batch 2"]
    commit = (home.checkpoint("orders") / "commits" / "2").read_bytes()
    assert CommitEntry.parse(commit) == CommitEntry(0)


def test_a_damaged_plan_that_no_table_holds_is_dropped(home: Home) -> None:
    file = home.checkpoint("orders") / "offsets" / "3"
    file.write_text("v1")

    assert done(home) == ["offsets/3: batch 3 is not in the table and will be planned again"]
    assert not file.exists()


def test_a_sound_plan_is_kept(home: Home) -> None:
    plan = home.checkpoint("orders") / "offsets" / "3"
    write_sealed(plan, Offsets(0, 9, ('{"logOffset":2}',)).to_text())
    (home.checkpoint("orders") / "metadata").unlink()

    assert len(done(home)) == 1
    assert plan.exists()


def test_offsets_of_a_landing_of_files_are_written_again(home: Home) -> None:
    before = offsets(home, "orders", 2)
    (home.checkpoint("orders") / "offsets" / "2").write_bytes(b"v1\n\x00\x01")

    assert done(home) == ["offsets/2: written again, from where the landed rows came from"]
    after = offsets(home, "orders", 2)
    assert after == replace(before, planned_at_ms=int(NOON.timestamp() * 1000))


def test_offsets_before_the_last_need_not_be_true_once_the_last_is_done(home: Home) -> None:
    (home.checkpoint("paid") / "offsets" / "1").unlink()

    [what] = done(home)

    assert what.startswith("offsets/1: batch 2 is done")
    assert offsets(home, "paid", 1) == offsets(home, "paid", 0).as_stand_in()


def test_no_batch_is_done_once_more_from_offsets_that_only_stand_in(home: Home) -> None:
    (home.checkpoint("paid") / "offsets" / "1").unlink()
    done(home)
    (home.checkpoint("paid") / "commits" / "2").unlink()

    assert damage(home) == ["offsets/1"]
    assert done(home) == ["commits/2: written again: the table holds batch 2"]


def test_a_landing_whose_checkpoint_is_gone_names_every_file_it_has_read(home: Home) -> None:
    path = home.checkpoint("orders")
    before = {file.name: file.read_text() for file in (path / "sources" / "0").glob("[0-9]")}
    shutil.rmtree(path)

    done(home)

    files = examine(home)["orders"].folder.files.sound
    named = [file.to_line() for entry in files.values() for file in entry]
    assert sorted(line.partition('"batchId"')[0] for line in named) == sorted(
        text.splitlines()[1].partition('"batchId"')[0] for text in before.values()
    )
    assert offsets(home, "orders", 2).log_offset == 2


def test_the_file_log_is_written_again_from_the_landed_rows(home: Home) -> None:
    log = home.checkpoint("orders") / "sources" / "0"
    before = {file.name: file.read_text() for file in log.glob("[0-9]")}
    shutil.rmtree(log)

    assert len(done(home)) == 3
    assert {file.name: file.read_text() for file in log.glob("[0-9]")} == before


def test_an_entry_of_the_file_log_that_did_not_land_is_dropped_with_its_plan(
    home: Home, tmp_path: Path
) -> None:
    path = home.checkpoint("orders")
    write_sealed(path / "offsets" / "3", Offsets(0, 9, ('{"logOffset":3}',)).to_text())
    write_sealed(path / "sources" / "0" / "3", entry(tmp_path, 3)[:20])

    assert [what.partition(":")[0] for what in done(home)] == ["sources/0/3", "offsets/3"]


def test_a_compacted_entry_names_all_that_has_landed(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    home.prepare("shop", sources=["orders"])
    landed(home, *({f"/in/{n}.json": 1, f"/in/{n}.json@512": 1} for n in range(12)))
    path = checkpoint(home, "orders", [{"logOffset": n} for n in range(12)])
    for n in (10, 11):
        line = FileRead(f"file:///in/{n}.json", 1, n).to_line()
        write_sealed(path / "sources" / "0" / str(n), f"v1\n{line}")

    done(home)

    files: Any = examine(home)["orders"].folder.files.sound[9]
    assert [(f.path, f.batch) for f in files] == [(f"file:///in/{n}.json", n) for n in range(10)]


def test_an_answer_is_rebuilt_with_all_that_is_made_from_it(home: Home) -> None:
    shop = graph(*SHOP.declared, view("seen", "paid"), serve("sold", "seen"))
    checkpoint(home, "sold", [{"reservoirVersion": 0}])

    with raises("REPAIR_NOT_AGREED"):
        rebuild(shop, home, "paid")
    [remedy] = rebuild(shop, home, "paid", agreed=True).remedies

    assert remedy.what == "computed again from what is landed: paid, by, sold"
    assert home.tables == ("orders",)
    [aside] = (home.path / "aside").iterdir()
    assert sorted(str(p.relative_to(aside)) for p in aside.glob("*/*")) == [
        "checkpoints/paid",
        "checkpoints/sold",
        "tables/paid",
    ]
    assert rebuild(shop, home, "by", agreed=True).remedies == ()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("orders", "it is a source, not an answer"),
        ("seen", "it is a view, not an answer"),
        ("hot", "it is made from 'clicks', which is live: its rows are not stored"),
    ],
)
def test_what_cannot_be_computed_again_is_not_moved(home: Home, name: str, why: str) -> None:
    live = (source("clicks", live=True), table("hot", "clicks"))
    shop = graph(*SHOP.declared, view("seen", "paid"), *live)

    with raises("REBUILD_REFUSED", match=why):
        rebuild(shop, home, name, agreed=True)
    with raises("UNKNOWN_DATASET", match="pade"):
        rebuild(shop, home, "pade", agreed=True)

    assert not (home.path / "aside").exists()


def test_a_table_whose_offsets_are_lost_is_computed_again_with_all_that_reads_it(
    home: Home,
) -> None:
    commit(home, "by", 0, query_id="recompute")
    (home.checkpoint("paid") / "offsets" / "2").write_bytes(b"")

    with raises("REPAIR_NOT_AGREED") as caught:
        repair(SHOP, home)
    assert damage(home) == ["offsets/2"]
    assert done(home, agreed=True) == [
        "computed again from what is landed: paid, by (checkpoints/paid/offsets/2 is lost, and "
        "with it which rows the last batch had read)"
    ]

    assert str(caught.value) == (
        "[REPAIR_NOT_AGREED] this would move tables aside, to be computed again: by, paid\n"
        "  fix: repeat the command with --yes; nothing was changed"
    )
    assert home.tables == ("orders",)
    [aside] = (home.path / "aside").iterdir()
    assert sorted(str(p.relative_to(aside)) for p in aside.glob("*/*")) == [
        "checkpoints/paid",
        "tables/by",
        "tables/paid",
    ]


def test_a_table_made_from_a_live_source_is_not_moved_away(home: Home) -> None:
    live = graph(source("orders", live=True), table("paid", "orders"))
    (home.checkpoint("paid") / "offsets" / "2").unlink()

    with raises("CHECKPOINT_LOST") as caught:
        repair(live, home, agreed=True)

    assert caught.value.what.endswith(
        "which rows the last batch had read; "
        "it is made from 'orders', which is live: its rows are not kept"
    )


def test_a_landing_that_lacks_batches_is_refused(home: Home) -> None:
    checkpoint(home, "orders", [{"logOffset": n} for n in range(5)])
    file = home.checkpoint("orders") / "commits" / "4"

    with raises("CHECKPOINT_LOST") as caught:
        repair(SHOP, home, agreed=True)

    assert str(caught.value) == (
        f"[CHECKPOINT_LOST] the checkpoint of 'orders' cannot be mended: '{file}' is lost, and "
        "with it the way from it to the table: batch 4 is marked as done, but the table holds "
        "batches up to 2\n"
        f"  fix: restore '{file}' from a backup; to continue without it would lose or repeat rows, "
        "so nothing was changed"
    )


def kafka_home(tmp_path: Path, start: str) -> tuple[Home, Graph]:
    home = Home.at(tmp_path / "home")
    home.prepare("shop", sources=["orders"])
    landed(home, {"clicks/0": 9, "clicks/1": 4}, {"clicks/0": 19, "clicks/2": 0})
    connector = Kafka("clicks", starting_offsets=start)  # type: ignore[arg-type]
    return home, graph(source("orders", connector=connector))


def test_offsets_of_a_landing_of_kafka_follow_the_landed_positions(tmp_path: Path) -> None:
    home, app = kafka_home(tmp_path, "latest")
    path = checkpoint(home, "orders", [{"clicks": {"0": 10, "1": 5, "3": 7}}, {}])
    (path / "offsets" / "1").write_bytes(b"")

    done(home, app)

    [end] = offsets(home, "orders", 1).ends
    assert json.loads(end) == {"clicks": {"0": 20, "1": 5, "2": 1, "3": 7}}


def test_partitions_without_rows_keep_kafka_from_being_mended(tmp_path: Path) -> None:
    home, app = kafka_home(tmp_path, "latest")
    path = checkpoint(home, "orders", [{}, {}])
    for n in (0, 1):
        (path / "offsets" / str(n)).write_bytes(b"")

    with raises("CHECKPOINT_LOST") as caught:
        repair(app, home)

    assert caught.value.what.endswith("with it where partitions without rows had begun")


def test_offsets_of_a_counter_follow_its_rows(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    home.prepare("shop", sources=["orders"])
    landed(home, {"rate": 19}, {"rate": 29})
    path = checkpoint(home, "orders", [2, 3])
    (path / "offsets" / "1").write_bytes(b"")

    done(home, graph(source("orders", connector=Rate(10))))

    assert offsets(home, "orders", 1).ends == ("3",)


def test_a_home_that_a_driver_holds_is_not_repaired(home: Home) -> None:
    (home.checkpoint("paid") / "metadata").unlink()

    with Lease.acquire(home), raises("HOME_LOCKED"):
        repair(SHOP, home)

    assert damage(home) == ["metadata"]


def test_cases_are_taken_of_every_kind_and_sort_of_file(home: Home) -> None:
    found = chosen(cases(home), 40)

    assert len(found) == len(set(found)) == 40
    assert {case.kind for case in found} == {"delete", "empty", "cut", "flip", "garbage"}
    assert {case.file.split("/")[1] for case in found} == {"orders", "paid"}


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return finished(tmp_path_factory.mktemp("shop"), spark, files=8)


@pytest.fixture(scope="module")
def judge(shop: Finished, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    return Judge(shop, tmp_path_factory.mktemp("judge"))


def newest(home: Home, pattern: str) -> str:
    """Name the newest of the files that fit."""
    found = (home.path / "checkpoints").glob(pattern)
    last = max(found, key=lambda file: int(file.name.partition("_")[0].partition(".")[0]))
    return str(last.relative_to(home.path))


def died_of(shop: Finished, home: Home) -> CheckpointDamagedError:
    """Run a damaged home; give what the first query died of."""
    with raises("QUERY_STOPPED") as caught:
        shop.app.run(home=home.path, once=True, fail_fast=True)
    assert isinstance(caught.value.__cause__, CheckpointDamagedError)
    return caught.value.__cause__


@pytest.mark.spark
def test_a_repaired_shop_holds_what_it_would_have_held(shop: Finished, judge: Judge) -> None:
    """Source and tables are damaged at once: offsets, files read, commits, state."""
    home = shop.home
    verdicts = [
        judge.judge(
            Case("flip", newest(home, "orders/offsets/[0-9]*")),
            Case("garbage", newest(home, "orders/sources/0/[0-9]*")),
            Case("cut", newest(home, "paid/commits/[0-9]*")),
            Case("delete", newest(home, "per_minute/state/0/0/*.changelog")),
        ),
        judge.judge(
            Case("delete", "checkpoints/orders/commits"),
            Case("empty", "checkpoints/orders/metadata"),
            Case("flip", newest(home, "paid/offsets/[0-9]*")),
        ),
    ]

    assert [verdict.outcome for verdict in verdicts] == ["repaired", "repaired"], verdicts
    assert "computed again" not in verdicts[0].detail
    assert "computed again from what is landed: paid, per_minute, best" in verdicts[1].detail


@pytest.mark.spark
@pytest.mark.parametrize(
    ("case", "file"),
    [
        (Case("empty", "checkpoints/orders/metadata"), "metadata"),
        (Case("delete", "checkpoints/paid/commits"), "commits/"),
    ],
)
def test_a_run_on_a_damaged_checkpoint_names_the_file(
    shop: Finished, tmp_path: Path, case: Case, file: str
) -> None:
    home = Home.at(tmp_path / "home")
    shutil.copytree(shop.home.path, home.path)
    case.inflict(home)

    error = died_of(shop, home)

    assert file in str(error.facts["file"])
    assert f"`millstream checkpoint repair APP --home {home.path}`" in error.fix


@pytest.mark.spark
def test_state_that_spark_finds_damaged_while_it_runs_is_named(
    shop: Finished, tmp_path: Path
) -> None:
    home = Home.at(tmp_path / "home")
    shutil.copytree(shop.home.path, home.path)
    file = newest(home, "paid/state/0/0/*.changelog")
    Case("flip", file).inflict(home)

    assert died_of(shop, home).facts["file"] == str(home.path / file)


@pytest.mark.spark
def test_a_sweep_reports_every_case_and_is_written_down(shop: Finished, tmp_path: Path) -> None:
    reported: list[str] = []

    sweep = Sweep("2026-11-16", seed=3).over(shop, tmp_path, 1, reported.append)

    assert [line.split()[0] for line in reported] == ["1/1", "1/1"]
    written = json.loads(sweep.to_json())
    assert [sum(counts.values()) for counts in written["counts"].values()] == [1, 1]
    assert written["wrong"] == []

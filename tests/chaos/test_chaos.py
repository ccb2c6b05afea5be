from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.chaos import Clock, Findings, Folder, Oracle, Report, Span, __main__ as program, schedule
from tests.chaos.fault import AtCall, AtPoint
from tests.chaos.poll import Poller
from tests.chaos.report import Outcome, TrialReport
from tests.chaos.subject import Subject
from tests.chaos.table import to_markdown
from tests.harness import HarnessError

from millstream.lake.compaction import compact
from millstream.lake.delta import FencedTable
from millstream.lake.home import Home
from millstream.lake.log import EPOCH, FACTS, Facts
from millstream.lake.stored import stored_files
from millstream.loading import load
from millstream.plan import plan

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.fault import Fault

ETL = "examples/etl/app.py"
QUERIES = plan(load(ETL).graph)
FILE = "/in/000000.txt"


class Landing:
    """A landing table as drivers write it, and what they might do wrong."""

    def __init__(self, place: Path) -> None:
        self.home = Home.at(place)
        self.home.prepare("shop", sources=["orders"])
        self.path = self.home.table("orders")
        self._facts = Facts(query_id="q")

    def commit(
        self,
        positions: list[int],
        *,
        batch: int | None = None,
        reported: int | None = None,
        epoch: int = 1,
    ) -> None:
        number = self._facts.batch + 1 if batch is None else batch
        rows = len(positions) if reported is None else reported
        self._facts = Facts(
            query_id="q", epoch=epoch, batch=number, rows=rows, totals=self._facts.totals
        ).plus({"input": rows})
        rows_landed = pa.table(
            {
                "_origin": pa.array([FILE] * len(positions)),
                "_position": pa.array(positions, pa.int64()),
            }
        )
        write_deltalake(
            str(self.path),
            rows_landed,
            mode="append",
            commit_properties=CommitProperties(
                custom_metadata={FACTS: json.dumps(asdict(self._facts))},
                app_transactions=[Transaction(EPOCH, epoch), Transaction("millstream.q", number)],
            ),
        )

    def oracle(self, put: int) -> Oracle:
        return Oracle(self.home, lambda: {"orders": {FILE: Span(1, put)}})


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path / "home")


def test_rows_that_landed_once_are_clean(landing: Landing) -> None:
    oracle = landing.oracle(put=5)
    landing.commit([1, 2])
    landing.commit([3, 4, 5])

    assert oracle.settle() == Findings()
    assert (oracle.rows, oracle.batches, oracle.last_batch("orders")) == (5, 2, 1)


def test_rows_of_compacted_files_are_not_counted_again(landing: Landing, tmp_path: Path) -> None:
    oracle = landing.oracle(put=5)
    landing.commit([1, 2])
    landing.commit([3, 4, 5])
    (tmp_path / "staging").mkdir()
    table = FencedTable(landing.path, name="orders", epoch=1)

    assert compact(table, stored_files(table.snapshot()), tmp_path / "staging").after == 1

    assert oracle.settle() == Findings()
    assert (oracle.rows, oracle.batches) == (5, 2)


def test_a_row_that_may_still_be_on_its_way_is_lost_only_in_the_end(landing: Landing) -> None:
    oracle = landing.oracle(put=3)
    landing.commit([1, 2])

    assert oracle.look().lost == 0
    assert oracle.settle().lost == 1


def test_a_gap_before_a_landed_row_is_a_lost_row(landing: Landing) -> None:
    oracle = landing.oracle(put=4)
    landing.commit([1])
    landing.commit([3, 4])

    found = oracle.look()

    assert found.lost == 1
    assert found.remarks == (f"'orders': 1 rows of {FILE} are lost, from 2",)


def test_a_source_that_feeds_itself_counts_from_zero(landing: Landing) -> None:
    oracle = Oracle(landing.home, dict)
    landing.commit([0, 1, 3])

    assert oracle.settle().lost == 1


def test_a_source_that_never_landed_has_lost_everything(tmp_path: Path) -> None:
    oracle = Oracle(Home.at(tmp_path), lambda: {"orders": {FILE: Span(1, 20)}})

    assert oracle.settle().lost == 20


def test_a_row_that_landed_twice_is_duplicated(landing: Landing) -> None:
    oracle = landing.oracle(put=3)
    landing.commit([1, 2])
    landing.commit([2, 3])

    found = oracle.look()

    assert (found.lost, found.duplicated) == (0, 1)
    assert found.remarks == (f"'orders': 1 rows too many of {FILE}, from 2",)


def test_a_row_that_nobody_put_is_one_too_many(landing: Landing) -> None:
    oracle = landing.oracle(put=2)
    landing.commit([1, 2, 3])

    assert oracle.look().duplicated == 1


def test_a_batch_that_is_there_twice_is_duplicated(landing: Landing) -> None:
    oracle = landing.oracle(put=4)
    landing.commit([1, 2])
    landing.commit([3, 4], batch=0)

    assert oracle.look().duplicated == 2


def test_a_batch_that_was_skipped_is_lost(landing: Landing) -> None:
    oracle = landing.oracle(put=2)
    landing.commit([1])
    landing.commit([2], batch=2)

    assert oracle.look().lost == 1


def test_a_batch_that_is_there_in_part_is_torn(landing: Landing) -> None:
    oracle = landing.oracle(put=3)
    landing.commit([1, 2], reported=3)

    assert oracle.look() == Findings(torn=1, remarks=("'orders': batch 0 says 3 rows and has 2",))


def test_a_file_that_a_commit_names_and_that_is_gone_is_torn(landing: Landing) -> None:
    oracle = landing.oracle(put=2)
    landing.commit([1, 2])
    [file] = landing.path.glob("*.parquet")
    file.unlink()

    assert oracle.look().torn == 1


def test_a_version_that_is_missing_is_torn(landing: Landing) -> None:
    oracle = landing.oracle(put=3)
    for position in (1, 2, 3):
        landing.commit([position])
    (landing.path / "_delta_log" / f"{1:020d}.json").unlink()

    assert oracle.look().torn == 1


def test_a_commit_of_an_overtaken_driver_is_a_step_back(landing: Landing) -> None:
    oracle = landing.oracle(put=2)
    landing.commit([1], epoch=2)
    landing.commit([2], epoch=1)

    assert oracle.look().regressed == 1


def test_a_merge_that_did_less_than_it_says_is_torn(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.prepare("shop", sources=[])
    path = str(home.table("best"))
    write_deltalake(path, pa.table({"k": [1, 2], "v": [1, 2]}))
    facts = Facts(query_id="q", batch=0, rows=3).plus({"input": 3, "written": 3})
    properties = CommitProperties(
        custom_metadata={FACTS: json.dumps(asdict(facts))},
        app_transactions=[Transaction("millstream.q", 0)],
    )
    merge = DeltaTable(path).merge(
        pa.table({"k": [2, 3], "v": [5, 6]}),
        "new.k = old.k",
        source_alias="new",
        target_alias="old",
        commit_properties=properties,
    )
    merge.when_matched_update_all().when_not_matched_insert_all().execute()

    found = Oracle(home, dict).look()

    assert found == Findings(torn=1, remarks=("'best': batch 0 says 3 rows and has 2",))


def test_the_poller_sees_a_version_go_back(landing: Landing) -> None:
    poller = Poller(landing.home)
    landing.commit([1])
    landing.commit([2])
    poller.look()
    (landing.path / "_delta_log" / f"{1:020d}.json").unlink()

    poller.look()

    assert poller.findings.remarks == (
        "'orders' went from version 1 to 0",
        "'orders' went from 2 input to 1",
    )


def test_the_poller_sees_a_total_go_back(landing: Landing) -> None:
    poller = Poller(landing.home)
    landing.commit([1, 2, 3])
    poller.look()
    landing._facts = Facts(query_id="q")
    landing.commit([4])

    poller.look()

    assert poller.findings.remarks == ("'orders' went from 3 input to 1",)


def test_the_same_seed_gives_the_same_schedule() -> None:
    one, same = (schedule(QUERIES, seed=7, points=60) for _ in range(2))

    assert one == same
    assert one != schedule(QUERIES, seed=8, points=60)


@pytest.mark.parametrize("points", [1, 5, 13, 60, 110, 400])
def test_a_schedule_has_as_many_faults_as_asked_for(points: int) -> None:
    trials = schedule(QUERIES, seed=1, points=points)

    assert sum(map(len, trials)) == points


def test_a_long_schedule_has_every_named_point_of_every_query() -> None:
    trials = schedule(QUERIES, seed=1, points=110)

    named = [str(fault) for trial in trials for fault in trial if isinstance(fault, AtPoint)]
    assert len(named) == len(set(named)) == 48
    assert [n for n in named if ":silver:first" in n] == [
        "table_taken:silver:first",
        "batch_planned:silver:first",
        "batch_staged:silver:first",
        "offsets_durable:silver:first",
        "quarantine_commit:silver:first",
        "files_moved:silver:first",
        "sink_commit:silver:first",
    ]


def test_system_calls_are_swept_on_a_home_of_their_own_from_the_first_one_on() -> None:
    [_, swept] = schedule(QUERIES, seed=1, points=110)

    assert all(isinstance(fault, AtCall) for fault in swept)
    assert next(f.nth for f in swept if isinstance(f, AtCall)) == 1


def test_a_schedule_may_leave_kinds_out() -> None:
    [trial] = schedule(QUERIES, seed=1, points=10, shares={"point": 1, "moment": 1})

    assert sorted(fault.kind for fault in trial) == ["moment"] * 5 + ["point"] * 5


def test_a_folder_expects_every_line_it_has_put(tmp_path: Path) -> None:
    folder = Folder(tmp_path, str, source="orders", variable="ORDERS", rows=2)
    folder.feed()
    folder.feed()

    assert (tmp_path / "000001.txt").read_text() == "2\n3\n"
    assert folder.environment == {"ORDERS": str(tmp_path)}
    assert folder.expected() == {
        "orders": {
            str(tmp_path / "000000.txt"): Span(1, 2),
            str(tmp_path / "000001.txt"): Span(1, 2),
        }
    }


def test_an_app_is_named_with_its_feeder() -> None:
    assert Subject.parse("app.py") == Subject("app.py", Clock)
    assert Subject.parse("app.py=tests.chaos.feed:Clock") == Subject("app.py", Clock)
    with pytest.raises(HarnessError, match="'nowhere:Feeder'"):
        Subject.parse("app.py=nowhere:Feeder")


def outcome(kind: str, recovery_s: float | None, *, broken: str = "") -> Outcome:
    return Outcome(f"{kind}:1", kind, True, 9.0, recovery_s, broken, Findings())


REPORT = Report(
    seed=7,
    date="2026-11-16",
    trials=(
        TrialReport("shop", 1200, 81, (outcome("point", 8.0), outcome("jvm", None)), Findings()),
        TrialReport("shop", 300, 9, (outcome("point", 9.5),), Findings(torn=2, remarks=("x",))),
        TrialReport("etl", 5, 1, (outcome("moment", 7.0, broken="hung"),), Findings()),
    ),
)


def test_a_report_is_read_as_it_was_written() -> None:
    assert Report.from_json(REPORT.to_json()) == REPORT
    assert not REPORT.is_good


def test_the_table_counts_by_app_and_by_fault() -> None:
    head, _, *lines = to_markdown(REPORT).splitlines()

    assert head.startswith("2026-11-16, seed 7: 4 faults, 4 of them struck")
    assert [line for line in lines if line] == [
        "| app | faults | rows | batches | lost | duplicated | torn | wrong | regressed "
        "| misbehaved | recovery p50 | p99 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        "| shop | 3 | 1,500 | 90 | 0 | 0 | 2 | 0 | 0 | 0 | 8.0 s | 9.5 s |",
        "| etl | 1 | 5 | 1 | 0 | 0 | 0 | 0 | 0 | 1 | 7.0 s | 7.0 s |",
        "| fault | faults | shop | etl | recovery p50 | p99 |",
        "| --- | --- | --- | --- | --- | --- |",
        "| killed at a named point of the commit path | 2 | 2 | 0 | 8.0 s | 9.5 s |",
        "| killed at a random moment | 1 | 0 | 1 | 7.0 s | 7.0 s |",
        "| JVM killed alone | 1 | 1 | 0 | - | - |",
    ]


def test_a_run_that_was_ended_goes_on_with_the_trials_it_had_still_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def note(subject: Subject, faults: tuple[Fault, ...], *_: object) -> TrialReport:
        done.append(", ".join(map(str, faults)))
        if len(done) == 2:
            raise KeyboardInterrupt
        return TrialReport(subject.app, rows=1, batches=1, outcomes=(), findings=Findings())

    monkeypatch.setattr(program, "_trial", note)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    file = str(tmp_path / "chaos.json")
    asked = ("--apps", ETL, ETL, "--points", "8", "--seed", "7", "--json", file)
    with pytest.raises(KeyboardInterrupt):
        program.main(asked)

    again = [*asked, "--go-on", "--seed", "8"]
    assert program.main(again) == 0

    report = Report.from_json((tmp_path / "chaos.json").read_text())
    assert (report.seed, len(report.trials)) == (7, 4)
    assert done[2] == done[1]
    assert len(done) == 5

"""Real drivers are killed while they maintain their tables, and another app reads one of them.

The driver is that of the shop, with Spark: it lands orders, adds paid ones to a table, updates a
sum per minute by key and recomputes another table. It compacts and deletes versions all the time,
as it does within days elsewhere: three small files are enough, and no version is kept that no
reader needs. A driver of another home reads the paid orders as they come; now and then it is killed
too and stays away for a while, so that versions must wait for it. After each kill every table and
every version that is kept is read without Spark. At the end both apps process what is left, and
their tables must equal the batch answer.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from tests.chaos.driver import Driver
from tests.chaos.landed import Landed
from tests.chaos.oracle import compare_with_batch
from tests.document import table as markdown, write_between_marks
from tests.shop import APP, feeder

import millstream as ms
from millstream.crash import VARIABLE
from millstream.lake.compaction import FileSizes
from millstream.lake.home import QUARANTINE, Home
from millstream.lake.log import facts_of, first_version, versions
from millstream.lake.maintenance import Requests, read_maintained
from millstream.lake.stored import stored_files
from millstream.loading import load
from millstream.run.application import ApplicationRun
from millstream.spark.session import open_session
from millstream.upkeep.maintain import UpkeepOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from millstream.model.graph import Graph

OFTEN = UpkeepOptions(sizes=FileSizes(together=3), cut_at_least=1, look_every_s=0.1, rest=1)
_REWRITTEN = ("orders", "paid", f"paid{QUARANTINE}")
"""Tables that have small files: the others consist of one."""
_CUT = (*_REWRITTEN, "per_minute", "best")
PLACES = (
    *(f"{point}:{name}" for point in ("files_rewritten", "rewrite_commit") for name in _REWRITTEN),
    *(f"{point}:{name}" for point in ("history_closed", "old_files_deleted") for name in _CUT),
)
"""Every named point of maintenance, and every table that reaches it."""
_REACHED_WITHIN_S, _ENDS_WITHIN_S, _LOOK_S = 120.0, 150.0, 0.1
_READER_AWAY_EVERY = 4
_MOST_WAITING = 3


def shop() -> Graph:
    """Declare the shop, of which no version is kept longer than readers need it."""
    graph = load(APP).graph
    return replace(graph, options=replace(graph.options, keep_versions="0 seconds"))


def reader(home: Path) -> Graph:
    """Declare the app that reads the paid orders of the shop in another home."""
    app = ms.App("reader", keep_versions="0 seconds")
    app.source(name="paid")(lambda: ms.Table(str(home), "paid"))
    app.sql("dear", "SELECT id, item, price FROM paid WHERE price > 25")
    return app.graph


def graph_of(place: Path, name: str) -> Graph:
    """Return one of the two apps."""
    return shop() if name == "shop" else reader(place / "shop")


def drive(place: Path, name: str, *, once: bool = False) -> None:
    """Be the driver of one of the two apps, until it is killed or asked to stop."""
    home = Home.at(place / name)
    running = ApplicationRun.open(
        graph_of(place, name),
        home,
        connect=lambda **of: open_session(name, master="local[2]", **of),
        options={"upkeep": OFTEN, "once": once},
    )
    signal.signal(signal.SIGTERM, lambda *_: running.ask_to_stop())
    running.serve()
    running.raise_if_stopped_for_good()


@dataclass
class Result:
    """What was seen."""

    kills: int = 0
    struck: int = 0
    reader_kills: int = 0
    rows: int = 0
    versions_read: int = 0
    compacted: int = 0
    deleted: int = 0
    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    """Rows that differ from the batch answer, and versions that are not as they were committed."""
    cut_off: int = 0
    """Drivers that ended by themselves."""
    by_place: dict[str, int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether nothing was found."""
        return not any((self.lost, self.duplicated, self.wrong, self.cut_off))


class Fire:
    """Two homes whose drivers are killed one after another; to be used in a `with`."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.result = place, Result()
        self.home, self.other = Home.at(place / "shop"), Home.at(place / "reader")
        self._input = feeder(place / "input", seed)
        self._logs, self._started = place / "drivers", 0
        self._logs.mkdir(parents=True, exist_ok=True)
        self._reader: Driver | None = None
        self._landed_at = -1
        for _ in range(_MOST_WAITING):
            self._input.feed()

    def __enter__(self) -> Fire:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.kill_all()

    def kill(self, place: str) -> None:
        """Run a driver of the shop until it dies at a point, and look at what it leaves."""
        self._attend_reader()
        driver = self._driver("shop", crash_at=place)
        try:
            self._until(lambda: driver.ended is not None, _REACHED_WITHIN_S)
            struck = driver.ended == -signal.SIGKILL
            if driver.ended is not None and not struck:
                self._cut_off("shop", driver)
        finally:
            driver.kill_all()
        self.result.kills += 1
        self.result.struck += struck
        self.result.by_place[place] = self.result.by_place.get(place, 0) + struck
        self._look()

    def finish(self) -> Result:
        """Have both apps process all that is left, and compare what they hold."""
        if self._reader is not None:
            self._reader.kill_all()
            self._reader = None
        for name in "shop", "reader":
            self._run_once(name)
        self._look(is_all=True)
        paid, read = (_numbers(home, "paid") for home in (self.home, self.other))
        self._count(read - paid, paid - read, "the paid orders that the other app has read")
        spark = open_session("fire", log_dir=self._logs)
        for name, home in ("shop", self.home), ("reader", self.other):
            graph = graph_of(self.place, name)
            found = compare_with_batch(graph, spark, home, self.place / f"batch of {name}")
            self.result.wrong += found.wrong
            self.result.remarks += found.remarks
        return self.result

    def _run_once(self, name: str) -> None:
        driver = self._driver(name, once=True)
        if not self._until(lambda: driver.ended is not None, _ENDS_WITHIN_S, feeds=False):
            driver.kill_all()
        if driver.ended:
            self._cut_off(name, driver)

    def _attend_reader(self) -> None:
        """Start the other app, or kill it and leave it dead for one kill of the shop."""
        if self._reader is not None and self._reader.ended is not None:
            self._cut_off("reader", self._reader)
            self._reader = None
        is_away = self.result.kills % _READER_AWAY_EVERY == _READER_AWAY_EVERY - 1
        if is_away and self._reader is not None:
            self._reader.kill_all()
            self.result.reader_kills += 1
            self._reader = None
        elif not is_away and self._reader is None and "paid" in self.home.tables:
            self._reader = self._driver("reader")

    def _driver(self, name: str, *, crash_at: str = "", once: bool = False) -> Driver:
        self._started += 1
        command = [sys.executable, "-m", "tests.chaos.maintained", "--drive", name]
        return Driver(
            [*command, "--place", str(self.place), *(["--once"] if once else [])],
            log=self._logs / f"{self._started:04d} {name}.log",
            environment={**self._input.environment, **({VARIABLE: crash_at} if crash_at else {})},
            traced=False,
        )

    def _until(self, true: Callable[[], bool], within_s: float, *, feeds: bool = True) -> bool:
        """Wait for something; meanwhile feed the shop, and ask it for all maintenance."""
        requests, until = Requests(self.home), time.monotonic() + within_s
        while not true():
            if time.monotonic() > until:
                return False
            landed = versions(self.home.table("orders")).stop
            if feeds and landed != self._landed_at:
                self._landed_at = landed
                self._input.feed()
            if self.home.path.exists() and requests.asked is None:
                requests.ask("maintain")
            time.sleep(_LOOK_S)
        return True

    def _look(self, *, is_all: bool = False) -> None:
        """Read every table and every version of it that is kept."""
        for name in self.home.tables:
            self._read_versions(name)
        if "orders" in self.home.tables:
            table = self.home.table("orders")
            landed = Landed("orders")
            landed.add(table / file.path for file in stored_files(DeltaTable(str(table))))
            expected = self._input.expected()["orders"]
            found = landed.settle(expected) if is_all else landed.look(expected)
            facts = facts_of(table)
            self.result.rows = landed.rows
            if landed.rows != facts.totals.get("input", 0):
                self._wrong(f"'orders' has {landed.rows} rows and says {facts.totals}")
            self.result.lost += found.lost
            self.result.duplicated += found.duplicated
            self.result.remarks += found.remarks
        if "paid" in self.home.tables:
            paid = _numbers(self.home, "paid")
            twice = Counter({order: n - 1 for order, n in paid.items() if n > 1})
            self._count(twice, Counter(), "paid orders")
        kept = [read_maintained(self.home, name) for name in self.home.tables]
        self.result.compacted = sum(each.compacted for each in kept)
        self.result.deleted = sum(each.deleted for each in kept)

    def _read_versions(self, name: str) -> None:
        table = self.home.table(name)
        for version in range(first_version(table), versions(table).stop):
            try:
                rows = DeltaTable(str(table), version=version).to_pyarrow_table().num_rows
            except Exception as error:
                self._wrong(f"version {version} of {name!r} cannot be read: {error}")
                continue
            self.result.versions_read += 1
            facts = facts_of(table, version=version)
            if name == "orders" and rows != facts.totals.get("input", 0):
                self._wrong(f"version {version} of 'orders' has {rows} rows, says {facts.totals}")

    def _cut_off(self, name: str, driver: Driver) -> None:
        self.result.cut_off += 1
        self.result.remarks.append(f"{name} ended with {driver.ended}: {driver.last_words}")

    def _wrong(self, remark: str) -> None:
        self.result.wrong += 1
        self.result.remarks.append(remark)

    def _count(self, surplus: Counter[Any], missing: Counter[Any], what: str) -> None:
        self.result.duplicated += surplus.total()
        self.result.lost += missing.total()
        for counter, word in (surplus, "too many"), (missing, "lost"):
            if counter:
                self.result.remarks.append(f"{counter.total()} of {what} {word}: {min(counter)}")


def _numbers(home: Home, name: str) -> Counter[Any]:
    rows = DeltaTable(str(home.table(name))).to_pyarrow_table().select(["id", "at"])
    return Counter(tuple(row.values()) for row in rows.to_pylist())


def fire(place: Path, places: Iterable[str], seed: int) -> Result:
    """Kill a driver at each place in turn."""
    with Fire(place, seed) as burning:
        for number, at in enumerate(places, 1):
            burning.kill(at)
            found = burning.result
            sys.stdout.write(f"  {number:4} {at:32} {'✓' if found.is_good else found.remarks}\n")
            sys.stdout.flush()
        return burning.finish()


def main() -> None:
    """Run it, and write the result down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drive", choices=["shop", "reader"])
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--place", type=Path)
    parser.add_argument("--rounds", type=int, default=1, help="over all points and tables")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--document", type=Path)
    typed = parser.parse_args()
    if typed.drive:
        drive(typed.place, typed.drive, once=typed.once)
        return
    with tempfile.TemporaryDirectory() as place:
        result = fire(typed.place or Path(place), PLACES * typed.rounds, typed.seed)
    found = {"seed": typed.seed, **asdict(result)}
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    if typed.json:
        typed.json.write_text(json.dumps(found, indent=1) + "\n")
    if typed.document:
        write_between_marks(typed.document, "maintained", to_markdown(result, typed.seed))
    sys.exit(not result.is_good)


def to_markdown(result: Result, seed: int) -> str:
    """Write the result as a table."""
    shown = {
        "kills": result.kills,
        "struck": result.struck,
        "kills of the reader": result.reader_kills,
        "rows": result.rows,
        "versions read": result.versions_read,
        "files compacted": result.compacted,
        "files deleted": result.deleted,
        "lost": result.lost,
        "duplicated": result.duplicated,
        "wrong": result.wrong,
        "cut off": result.cut_off,
    }
    rows = [[f"{count:,}" for count in shown.values()]]
    return "\n".join([f"{datetime.now(UTC):%Y-%m-%d}, seed {seed}:", "", *markdown([*shown], rows)])


if __name__ == "__main__":
    main()

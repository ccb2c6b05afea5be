"""The contract of sources: what is read lands once, also when the driver dies and reads again."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from millstream.app import App
from millstream.crash import OF_STORES, POINTS
from millstream.errors import CrashNotReachedError
from millstream.lake.home import Home
from millstream.testing.contract.report import Report, Trial
from millstream.testing.script import Script

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from millstream.model.connector import Connector

_SOURCE = "records"
_NOT_FOR_LANDINGS = ("quarantine_commit", *OF_STORES)


def check_source(
    connector: Connector, feed: Callable[[], int], spark: SparkSession, **options: Any
) -> Report:
    """Kill the driver at every point of the landing while records arrive.

    Args:
        connector: The source to try.
        feed: Adds records to what the connector reads; returns how many.
        spark: The session to use.
        options: As for `@app.source`.
    """
    app = App("contract")
    app.source(name=_SOURCE, **options)(lambda: connector)
    place = Path(tempfile.mkdtemp(prefix="millstream-contract-"))
    try:
        with Script(app, Home.at(place), spark, is_scripted=False) as script:
            return _tried(script, Home.at(place), feed)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _tried(script: Script, home: Home, feed: Callable[[], int]) -> Report:
    fed, trials = feed(), list[Trial]()
    script.drain()
    trials.append(_judge("records land, each once", home, fed))
    for point in (p for p in POINTS if p not in _NOT_FOR_LANDINGS):
        fed += feed()
        try:
            script.crash(after=point)
        except CrashNotReachedError:
            found = "nothing landed: the records that were fed were not read"
            trials.append(Trial(f"crash after {point}", loses=True, repeats=False, found=found))
            continue
        script.restart()
        script.drain()
        trials.append(_judge(f"crash after {point}", home, fed))
    trials.append(_same_when_read_again(script))
    return Report(tuple(trials))


def _same_when_read_again(script: Script) -> Trial:
    differences = [event.detail for event in script.events if event.kind == "differs"]
    found = "; ".join(differences) or "every batch that was read again was the same"
    name = "the same records when read again"
    return Trial(name, loses=False, repeats=bool(differences), found=found)


def _judge(name: str, home: Home, fed: int) -> Trial:
    columns = ["_origin", "_position"]
    rows = DeltaTable(str(home.table(_SOURCE))).to_pyarrow_table(columns=columns)
    places = Counter(zip(*(rows[c].to_pylist() for c in columns), strict=True))
    twice = sum(count - 1 for count in places.values())
    found = f"{rows.num_rows} of {fed} records landed, {twice} of them twice"
    return Trial(name, loses=rows.num_rows - twice < fed, repeats=bool(twice), found=found)

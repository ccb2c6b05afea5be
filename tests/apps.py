"""Small applications with a memory source, and plain rows read without Spark."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from millstream.app import App
from millstream.systems.memory.source import Memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.model.connector import Connector
    from millstream.observe import Event

READING = "id BIGINT, at TIMESTAMP, speed DOUBLE"


def at(clock: str) -> str:
    return f"2026-05-01T{clock}Z"


def moment(clock: str) -> datetime:
    return datetime.fromisoformat(at(clock))


def reading(number: int, clock: str | None, speed: float = 1.0) -> dict[str, Any]:
    return {"id": number, "at": at(clock) if clock else None, "speed": speed}


def app_of(connector: Connector, **options: Any) -> App:
    """Make an app with one source, `readings`."""
    app = App("fleet")
    app.source(name="readings", **options)(lambda: connector)
    return app


def timed(connector: Connector | None = None, **options: Any) -> App:
    """Make an app whose source `readings` has an event time and waits 10 minutes."""
    connector = connector or Memory(READING)
    return app_of(connector, **{"event_time": "at", "watermark": "10 minutes", **options})


def run(app: App, home: Path, **options: Any) -> list[Event]:
    """Run until nothing is left, stopping at the first fault; return what was reported."""
    events: list[Event] = []
    manner: Any = {"home": home, "once": True, "fail_fast": True, **options}
    running = app.open(manner, on_event=events.append)
    running.serve()
    running.raise_if_stopped_for_good()
    return events


def rows(home: Path, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Read a table without Spark; give sorted rows of some columns, or of all."""
    table = DeltaTable(str(home / "tables" / name))
    names = columns or tuple(field.name for field in table.schema().fields)
    found = table.to_pyarrow_table(columns=list(names)).to_pylist()
    return sorted((tuple(map(_plain, row.values())) for row in found), key=str)


def forget_commit(home: Path, query: str) -> None:
    """Have Spark believe that the last batch of a query was not done."""
    commits = home / "checkpoints" / query / "commits"
    last = max(
        (file for file in commits.iterdir() if file.name.isdigit()), key=lambda f: int(f.name)
    )
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value.values())) if isinstance(value, dict) else value


def wait_for(condition: Callable[[], object], within_s: float = 60) -> None:
    """Wait until something holds."""
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)

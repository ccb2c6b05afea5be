"""An outbox without Spark, a deliverer over it, and what is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import write_deltalake

from millstream.alert.deliver import Deliverer
from millstream.errors import Location
from millstream.lake.home import Home
from millstream.model.dataset import Alert
from millstream.model.notice import Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from millstream.observe import Event

AT = Location("app.py", 9)
NOTICE = Notice("ab" * 16, "shop", "unpicked", '{"order":"o1"}', None, '{"order":"o1","n":1}')
FIELDS: list[Any] = [("order", pa.string()), ("at", pa.timestamp("us", "UTC"))]
SCHEMA = pa.schema(FIELDS)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(f"2024-05-01T{text}").replace(tzinfo=UTC)


def row(order: str, at: str = "12:00:00") -> dict[str, Any]:
    return {"order": order, "at": moment(at)}


def alert(*to: Any, **options: Any) -> Alert:
    return Alert("unpicked", ("orders",), lambda frame: frame, AT, key=("order",), to=to, **options)


@dataclass
class Scene:
    """A home whose outbox is written by hand, and a clock."""

    home: Home
    at: float = 1_000.0
    epochs: int = 0
    events: list[Event] = field(default_factory=list)

    @staticmethod
    def of(folder: Path) -> Scene:
        return Scene(Home.at(folder))

    def commit(self, *rows: dict[str, Any]) -> None:
        self.commit_to("unpicked", *rows)

    def commit_to(self, name: str, *rows: dict[str, Any]) -> None:
        table = pa.Table.from_pylist(list(rows), SCHEMA)
        write_deltalake(str(self.home.table(name)), table, mode="append")

    def commit_all(self, batches: Iterable[Iterable[dict[str, Any]]]) -> None:
        for batch in batches:
            self.commit(*batch)

    def driver(self, reported: Alert, hold: Callable[[], None] = lambda: None) -> Deliverer:
        """Start a driver that is later than all before."""
        self.epochs += 1
        deliverer = Deliverer(
            "shop",
            self.home,
            self.epochs,
            hold=hold,
            report=self.events.append,
            now=lambda: self.at,
        )
        deliverer.add(reported, "at")
        return deliverer

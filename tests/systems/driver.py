"""A driver without Spark, to be killed: it writes numbered batches to one store until it dies.

`python -m tests.systems.driver KIND PLACE HOME EPOCH UP_TO [DIES_AT]`; a batch is taken down as
committed in the home when the store has it, as Spark does.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.systems.stores import shape, table

import millstream as ms
from millstream.errors import OvertakenError, StoreUnreachableError
from millstream.lake.fence import Logged, PendingBatch
from millstream.serve.fence import Driver, check_against_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

ROWS = 40
OVERTAKEN = 75
QUERY = "query"


def sink_of(kind: str, place: str) -> Any:
    """Give the sink of a store, by its address."""
    match kind:
        case "sqlite":
            return ms.SQLite(place, table="items")
        case "postgres":
            return ms.Postgres(place, table="items_killed")
        case "redis":
            return ms.Redis(place, key="id", prefix="killed")
        case "delta":
            return ms.DeltaPath(place)
        case "files":
            return ms.FileSink(place, "json")
    servers, _, topic = place.partition("/")
    return ms.Kafka(topic, servers, key="id").in_batches()


def rows_of(batch: int) -> list[dict[str, Any]]:
    """The rows of a batch, wherever it is computed."""
    return [{"id": batch * ROWS + n, "text": f"{batch}"} for n in range(ROWS)]


class Log:
    """What is left of a checkpoint: the last batch planned and the last one committed."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def read(self, name: str) -> int:
        try:
            return int((self._home / name).read_text())
        except FileNotFoundError:
            return -1

    def write(self, name: str, batch: int) -> None:
        temporary = self._home / f"{name}.{os.getpid()}"
        temporary.write_text(str(batch))
        temporary.replace(self._home / name)


def run(kind: str, place: str, home: Path, epoch: int, up_to: int, dies_at: str) -> None:
    log, sink = Log(home), sink_of(kind, place)
    driver = Driver(
        "shop/items",
        epoch,
        QUERY if log.read("planned") >= 0 else "",
        committed=log.read("committed"),
        planned=lambda: log.read("planned"),
        log=str(home),
    )
    store = sink.open(shape(sink, mode="append"), driver)
    held = store.take()
    logged = Logged(QUERY, log.read("committed"), log.read("planned"))
    check_against_checkpoint(held, store.place, logged, str(home))
    print("taken", flush=True)  # noqa: T201
    for batch in range(log.read("committed") + 1, up_to + 1):
        log.write("planned", max(batch, log.read("planned")))
        _write(store, batch, dies_at)
        if dies_at == "written":
            os.kill(os.getpid(), signal.SIGKILL)
        log.write("committed", max(batch, log.read("committed")))
        time.sleep(0.01)


def _write(store: Any, batch: int, dies_at: str) -> None:
    def parts() -> Iterator[pa.Table]:
        rows = rows_of(batch)
        yield table(*rows[: ROWS // 2])
        if dies_at == "rows":
            os.kill(os.getpid(), signal.SIGKILL)
        yield table(*rows[ROWS // 2 :])

    def settle(_: object) -> str:
        if dies_at == "settle":
            os.kill(os.getpid(), signal.SIGKILL)
        return ""

    while True:
        try:
            store.write(PendingBatch(QUERY, batch, str(batch)), parts, settle)
        except StoreUnreachableError:
            time.sleep(0.5)
        else:
            return


def main() -> None:
    kind, place, home, epoch, up_to, *dies_at = sys.argv[1:]
    try:
        run(kind, place, Path(home), int(epoch), int(up_to), dies_at[0] if dies_at else "")
    except OvertakenError:
        sys.exit(OVERTAKEN)


if __name__ == "__main__":
    main()

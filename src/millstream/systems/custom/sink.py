"""User functions as stores: the last batch that was handed over is recorded in the home."""

from __future__ import annotations

import json
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.errors import MillstreamError, fault
from millstream.lake.durable import write_durably
from millstream.lake.fence import Decision, Fence
from millstream.serve.fence import admit_batch, take_fence
from millstream.serve.store import WriteResult
from millstream.systems.custom.settings import Batch

if TYPE_CHECKING:
    from millstream.lake.fence import PendingBatch
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Shape
    from millstream.serve.store import Rows, Settle
    from millstream.systems.custom.settings import FunctionSink


class FunctionStore:
    """A function that batches are handed to, and the record of the last one."""

    def __init__(self, sink: FunctionSink, shape: Shape, driver: Driver) -> None:
        assert driver.folder is not None
        self.place = sink.place(shape.dataset)
        self._sink, self._shape, self._driver = sink, shape, driver
        self._note = driver.folder / f"{sink.name}.json"
        self._pool = _Pool(sink)

    def take(self) -> Fence:
        """Write this driver's epoch into the record."""
        fence = take_fence(self.fence(), self._driver, self.place)
        self._keep(fence)
        return fence

    def fence(self) -> Fence | None:
        """Read the record."""
        try:
            return Fence(**json.loads(self._note.read_text()))
        except FileNotFoundError:
            return None

    def write(self, pending: PendingBatch, rows: Rows, settle: Settle) -> WriteResult:
        """Hand a batch over, then record it.

        Raises:
            OvertakenError: A later driver has taken over.
            StoreUnreachableError: The function could not reach something.
            SINK_RAISED: The function raised.
        """
        held, decision = admit_batch(self.fence(), self._driver, pending, self.place)
        if decision is not Decision.APPLY:
            return WriteResult(decision, held)
        try:
            self._hand_over(pending, rows)
        except MillstreamError:
            raise
        except (OSError, EOFError) as error:
            why = f"{type(error).__name__}: {error}"
            raise fault("STORE_UNREACHABLE", store=self.place.name, why=why) from error
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            raise fault(
                "SINK_RAISED",
                at=self._shape.at,
                name=self._sink.name,
                serve=self._shape.dataset,
                cause=cause,
            ) from error
        fence = held.with_batch(pending, settle(()))
        self._keep(fence)
        return WriteResult(decision, fence)

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def _hand_over(self, pending: PendingBatch, rows: Rows) -> None:
        id_ = f"{self._driver.writer}/{pending.checkpoint}/{pending.batch}"
        if self._sink.connect is not None:
            self._pool.hand_over(rows, lambda part: self._batch(f"{id_}/{part}", pending, part))
            return
        parts = list(rows())
        if parts or self._shape.mode == "complete":
            # An answer without rows has no file with the types of its columns.
            nothing = pa.table({name: [] for name in self._shape.names})
            whole = pa.concat_tables(parts) if parts else nothing
            self._sink.function(whole, self._batch(id_, pending))

    def _batch(self, id_: str, pending: PendingBatch, part: int = 0) -> Batch:
        return Batch(id_, pending.batch, self._shape.mode, part)

    def _keep(self, fence: Fence) -> None:
        self._note.parent.mkdir(parents=True, exist_ok=True)
        write_durably(self._note, json.dumps(asdict(fence)), by=self._driver.owner)


class _Pool:
    """Connections, opened when first needed and reused; one that failed is closed."""

    def __init__(self, sink: FunctionSink) -> None:
        self._sink = sink
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._room = threading.Semaphore(2 * sink.parallel)

    def hand_over(self, rows: Rows, batch_of: Any) -> None:
        """Hand all parts of a batch over, several at a time; raise if any was refused."""
        tasks = []
        with ThreadPoolExecutor(self._sink.parallel) as threads:
            for number, part in enumerate(rows()):
                # Parts that wait for a thread would fill the memory.
                self._room.acquire()
                tasks.append(threads.submit(self._part, part, batch_of(number)))
        for task in tasks:
            task.result()

    def close(self) -> None:
        """Close all connections that can be closed."""
        while not self._free.empty():
            _close(self._free.get())

    def _part(self, rows: pa.Table, batch: Batch) -> None:
        try:
            connection = self._connection()
            try:
                self._sink.function(connection, rows, batch)
            except BaseException:
                _close(connection)
                raise
            self._free.put(connection)
        finally:
            self._room.release()

    def _connection(self) -> Any:
        assert self._sink.connect is not None
        try:
            return self._free.get_nowait()
        except queue.Empty:
            return self._sink.connect()


def _close(connection: Any) -> None:
    with suppress(Exception):
        connection.close()

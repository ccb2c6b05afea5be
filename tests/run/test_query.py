"""What a query does with a batch, without Spark: the sink and the log are at hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import raises

from millstream.checkpoint import CheckpointLog
from millstream.lake.log import Facts
from millstream.run.query import StreamOptions, StreamRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS: Any = "rows"
"""What stands for the rows of a batch."""


class Sink:
    """Remembers which batches it was given."""

    def __init__(self, held: int = -1) -> None:
        self.facts = Facts("q", batch=held, digest=f"digest of {held}")
        self.staged, self.committed = list[int](), list[int]()
        self.digest = self.facts.digest

    def stage(self, frame: object, batch: int) -> Any:
        self.staged.append(batch)

    def replay(self, frame: object) -> str:
        return self.digest

    def commit(self, staged: object, batch: int, query_id: str) -> None:
        assert query_id == "q"
        self.committed.append(batch)
        self.facts = replace(self.facts, batch=batch)


def log_of(folder: Path, *, planned: int, committed: int = -1) -> CheckpointLog:
    log = CheckpointLog(folder / "checkpoints" / "clean")
    for name, last in (("offsets", planned), ("commits", committed)):
        (log.path / name).mkdir(parents=True)
        for batch in range(last + 1):
            (log.path / name / str(batch)).write_text("v1")
    (log.path / "metadata").write_text(json.dumps({"id": "q"}))
    return log


def run_of(
    folder: Path, sink: Any, on_difference: Callable[[int], None] = lambda _: None, **options: Any
) -> StreamRun:
    opts = StreamOptions("append", on_difference, **options)
    return StreamRun(ROWS, sink, log_of(folder, planned=5), opts)


@pytest.mark.parametrize("held", [2, 3])
def test_a_batch_that_the_table_has_is_not_written_again(tmp_path: Path, held: int) -> None:
    sink = Sink(held)

    run_of(tmp_path, sink)._on_batch(ROWS, 2)

    assert (sink.staged, sink.committed) == ([], [])


def test_the_next_batch_is_written(tmp_path: Path) -> None:
    sink = Sink(2)

    run_of(tmp_path, sink)._on_batch(ROWS, 3)

    assert (sink.staged, sink.committed) == ([3], [3])


def test_of_replayed_batches_only_the_last_can_be_compared(tmp_path: Path) -> None:
    sink, found = Sink(3), list[int]()
    sink.digest = "another"
    run = run_of(tmp_path, sink, found.append)

    run._on_batch(ROWS, 2)
    run._on_batch(ROWS, 3)

    assert found == [3]


def test_a_batch_that_comes_after_a_stop_does_not_count_as_done(tmp_path: Path) -> None:
    sink = Sink()
    run = run_of(tmp_path, sink)
    run.ask_to_stop()

    with raises("BATCH_NOT_BEGUN"):
        run._on_batch(ROWS, 0)

    assert sink.committed == []


def test_a_batch_of_which_rows_were_dropped_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(rows: int) -> None:
        raise ValueError(rows)

    sink = Sink()
    run = run_of(tmp_path, sink, on_dropped=refuse)
    monkeypatch.setattr(StreamRun, "_started_query", None)
    monkeypatch.setattr("millstream.run.query.dropped_rows", lambda _: 7)

    with pytest.raises(ValueError, match="7"):
        run._on_batch(ROWS, 0)

    assert (sink.staged, sink.committed) == ([0], [])

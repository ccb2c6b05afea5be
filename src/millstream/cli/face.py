"""How a run looks: redrawn on a terminal, line by line in a pipe, or as JSON."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, Self

from millstream.cli import text
from millstream.views.shape import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.live import Live

    from millstream.views.live import DatasetView, EventView, WorkView
    from millstream.views.report import LedgerView

COLUMNS = ("dataset", "kind", "trigger", "in/s", "out/s", "batch", "complete to", "verdicts")
_LINE_EVERY_S = 1.0


class Face(Protocol):
    """Whoever shows a run."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

    def say(self, sentence: str) -> None:
        """Show a sentence to a person."""
        ...

    def report(self, subject: str, fact: str) -> None:
        """Show a step of the start-up."""
        ...

    def show(self, datasets: Sequence[DatasetView], *, last: bool = False) -> None:
        """Show how the queries are."""
        ...

    def tell(self, event: EventView) -> None:
        """Show what happened."""
        ...

    def sum_up(self, work: Sequence[WorkView], ledger: LedgerView) -> None:
        """Show what was done."""
        ...


def choose_face(*, json: bool) -> Face:
    """Choose how a run is shown."""
    if json:
        return JsonFace()
    return LiveFace() if text.is_terminal() else PlainFace()


class PlainFace:
    """Plain lines: at most about one a second for each query."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[int, float]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        pass

    def say(self, sentence: str) -> None:
        """Print a sentence."""
        print(sentence, flush=True)

    def report(self, subject: str, fact: str) -> None:
        """Print a step of the start-up."""
        self.say(text.report_line(subject, fact))

    def show(self, datasets: Sequence[DatasetView], *, last: bool = False) -> None:
        """Print a line for each query that has had a batch since its last line."""
        now = time.monotonic()
        for view in datasets:
            batch, at = self._shown.get(view.name, (-1, 0.0))
            if view.batch > batch and (last or now - at >= _LINE_EVERY_S):
                self._shown[view.name] = (view.batch, now)
                self.say(batch_line(view))

    def tell(self, event: EventView) -> None:
        """Print what happened."""
        if line := event_lines(event):
            self.say(line)

    def sum_up(self, work: Sequence[WorkView], ledger: LedgerView) -> None:
        """Print what was done and the ledger."""
        from millstream.cli.ledger import show

        self.say("")
        for done in work:
            self.say(work_line(done))
        self.say("")
        show(ledger)


class LiveFace(PlainFace):
    """A table that is redrawn in place; what happens scrolls by above it."""

    def __init__(self) -> None:
        super().__init__()
        self._live: Live | None = None

    def __exit__(self, *raised: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, sentence: str) -> None:
        """Print a sentence above the table."""
        if self._live is None:
            super().say(sentence)
        else:
            self._live.console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def show(self, datasets: Sequence[DatasetView], *, last: bool = False) -> None:  # noqa: ARG002
        """Redraw the table."""
        from rich.live import Live

        rows = [dataset_row(view) for view in datasets]
        table = text.rich_table(COLUMNS, rows, folds_last_only=True)
        if self._live is None:
            self.say("")
            self._live = Live(table, auto_refresh=False)
            self._live.start()
        self._live.update(table, refresh=True)

    def sum_up(self, work: Sequence[WorkView], ledger: LedgerView) -> None:
        """Leave the table as it is and print below it."""
        self.__exit__()
        super().sum_up(work, ledger)


class JsonFace(PlainFace):
    """One JSON object a line: a dataset after a batch, an event, and the ledger at the end."""

    def say(self, sentence: str) -> None:
        """Keep words for people to oneself."""

    def show(self, datasets: Sequence[DatasetView], *, last: bool = False) -> None:
        """Print the queries that have had a batch."""
        now = time.monotonic()
        for view in datasets:
            batch, at = self._shown.get(view.name, (-1, 0.0))
            if view.batch > batch and (last or now - at >= _LINE_EVERY_S):
                self._shown[view.name] = (view.batch, now)
                self._print("dataset", view)

    def tell(self, event: EventView) -> None:
        """Print what happened."""
        self._print("event", event)

    def sum_up(self, work: Sequence[WorkView], ledger: LedgerView) -> None:
        """Print what was done and the ledger."""
        self._print("work", list(work))
        self._print("ledger", ledger)

    def _print(self, kind: str, view: object) -> None:
        print(to_json({kind: view}), flush=True)


def dataset_row(view: DatasetView) -> list[str]:
    """Set a query as a row of the live table."""
    return [
        view.name,
        view.kind,
        view.trigger,
        text.rate(view.input_rate),
        text.rate(view.output_rate),
        text.took(view.batch_ms),
        text.moment(view.complete_to),
        condition(view),
    ]


def batch_line(view: DatasetView) -> str:
    """Set a query as one line, after a batch."""
    cells = (
        f"{datetime.now(UTC):%H:%M:%S}",
        f"{view.name:<20}",
        f"batch {view.batch:>6}",
        f"{text.rate(view.input_rate):>8} in/s",
        f"{text.rate(view.output_rate):>8} out/s",
        f"{text.took(view.batch_ms):>8}",
        f"complete to {text.moment(view.complete_to):<16}",
        condition(view),
    )
    return "  ".join(cells)


def condition(view: DatasetView) -> str:
    """Say what was set aside, after the state of a query that is in trouble."""
    troubled = view.state in ("restarting", "failed", "stale")
    counts, scope = view.aside
    said = text.verdicts(counts) + f" {scope}" * bool(counts)
    return f"{view.state.upper()} · " * troubled + said


def work_line(done: WorkView) -> str:
    """Say what a query did."""
    verb = "read" if done.kind == "source" else "answered"
    kept = "right" if done.kind == "source" else "written"
    return (
        f"  {done.name:<20}  {done.kind:<6}  {text.counted(done.batches, 'batch')}: "
        f"{text.counted(done.input, 'row')} {verb}, {text.grouped(done.output)} {kept}"
    )


_WORDS = {
    "restarting": "{query}: failed, {detail}",
    "failed": "{query}: stopped for good",
    "stale": "{query}: stale {detail}: it goes on, but nothing new reaches it",
    "differs": "{query}: {detail}",
    "receiver_failed": "{query}: {detail}",
    "alert_waits": "{query}: {detail}",
    "alert_dead": "{query}: {detail}; `millstream alerts retry` has it tried again",
    "renewed": "{query}: its reference data have changed, and are read again",
    "not_renewed": "{query}: its reference data cannot be read again; the rows from before stand",
    "file_changed": "{query}: {detail} was changed after it was read; "
    "what was read stands, and the change is not read",
}


def event_lines(event: EventView) -> str | None:
    """Say what happened; None for what goes without saying."""
    if event.kind not in _WORDS:
        return None
    sentence = "! " + _WORDS[event.kind].format(query=event.query, detail=event.detail)
    if event.fault is None:
        return sentence
    return sentence + "\n" + "\n".join(f"  {line}" for line in text.told(event.fault).splitlines())

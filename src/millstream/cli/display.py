"""How a run looks: redrawn on a terminal, line by line in a pipe, or as JSON."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol, Self

from millstream.cli import text
from millstream.observe.objective import length
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.live import Live

    from millstream.views.progress import DatasetView, EventView, UnderWayView, WorkView
    from millstream.views.report import LedgerView

COLUMNS = ("dataset", "kind", "trigger", "in/s", "out/s", "batch", "complete to", "verdicts")
_LINE_EVERY_S = 1.0
_UNDER_WAY_EVERY_S = 5.0


class Display(Protocol):
    """A way to show a run."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

    def say(self, sentence: str) -> None:
        """Show a sentence to a person."""
        ...

    def report(self, subject: str, fact: str) -> None:
        """Show a step of the start-up."""
        ...

    def show(self, datasets: Sequence[DatasetView], *, last: bool = False) -> None:
        """Show the state of the queries."""
        ...

    def show_event(self, event: EventView) -> None:
        """Show what happened."""
        ...

    def sum_up(self, work: Sequence[WorkView], ledger: LedgerView) -> None:
        """Show what was done."""
        ...


def choose_display(*, json: bool) -> Display:
    """Choose how a run is shown."""
    if json:
        return JsonDisplay()
    return LiveDisplay() if text.is_terminal() else PlainDisplay()


class PlainDisplay:
    """Plain lines: at most about one a second for each query."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[int, float]] = {}
        self._under_way: dict[str, float] = {}

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
            elif view.under_way is not None and self._is_due(view, now):
                self.say(under_way_line(view, view.under_way))

    def _is_due(self, view: DatasetView, now: float) -> bool:
        """Whether to show a batch that takes long: every few seconds."""
        is_due = now - self._under_way.get(view.name, 0.0) >= _UNDER_WAY_EVERY_S
        if view.under_way is None or not is_due:
            return False
        self._under_way[view.name] = now
        return True

    def show_event(self, event: EventView) -> None:
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


class LiveDisplay(PlainDisplay):
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


class JsonDisplay(PlainDisplay):
    """One JSON object a line: a dataset after a batch, an event, and the ledger at the end."""

    def say(self, sentence: str) -> None:
        """Print nothing: sentences are for people."""

    def show(self, datasets: Sequence[DatasetView], *, last: bool = False) -> None:
        """Print the queries that have had a batch."""
        now = time.monotonic()
        for view in datasets:
            batch, at = self._shown.get(view.name, (-1, 0.0))
            if view.batch > batch and (last or now - at >= _LINE_EVERY_S):
                self._shown[view.name] = (view.batch, now)
                self._print("dataset", view)
            elif self._is_due(view, now):
                self._print("dataset", view)

    def show_event(self, event: EventView) -> None:
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


def under_way_line(view: DatasetView, under_way: UnderWayView) -> str:
    """Set a batch that takes long as one line."""
    cells = (
        f"{datetime.now(UTC):%H:%M:%S}",
        f"{view.name:<20}",
        f"batch {view.batch + 1:>6}",
        *how_far(under_way),
        f"for {text.grouped(under_way.seconds)} s",
    )
    return "  ".join(cells)


def how_far(under_way: UnderWayView) -> Iterator[str]:
    """Say how much of a batch that takes long is done."""
    yield f"{text.grouped(under_way.done)} of {text.counted(under_way.tasks, 'task')} done"
    if under_way.rows:
        yield f"{text.counted(under_way.rows, 'row')} read"
    if under_way.remaining_s is not None:
        yield f"about {text.grouped(under_way.remaining_s)} s left"


def _behind(view: DatasetView) -> Iterator[str]:
    if view.behind is not None:
        left = length(timedelta(seconds=view.behind.left_s))
        yield f"behind {text.counted(view.behind.rows, 'row')}, {left} at this rate"


def condition(view: DatasetView) -> str:
    """Write what is to be read and what was quarantined, after the state of a troubled query."""
    troubled = view.state in ("restarting", "failed", "stale")
    counts, scope = view.aside
    verdicts = text.verdicts(counts) + f" {scope}" * bool(counts)
    busy = [*_behind(view), *(how_far(view.under_way) if view.under_way else ())]
    if busy:
        verdicts = " · ".join((*busy, *[verdicts] * bool(counts)))
    return f"{view.state.upper()} · " * troubled + verdicts


def work_line(done: WorkView) -> str:
    """Return what a query did."""
    verb = "read" if done.kind == "source" else "answered"
    kept = "right" if done.kind == "source" else "written"
    return (
        f"  {done.name:<20}  {done.kind:<6}  {text.counted(done.batches, 'batch')}: "
        f"{text.counted(done.input, 'row')} {verb}, {text.grouped(done.output)} {kept}"
    )


_WORDS = {
    "restarting": "{query}: failed, {detail}",
    "query_failed": "{query}: stopped for good",
    "stale": "{query}: stale {detail}: it runs, but nothing new reaches it",
    "differs": "{query}: {detail}",
    "receiver_failed": "{query}: {detail}",
    "alert_waits": "{query}: {detail}",
    "alert_dead": "{query}: {detail}; `millstream alerts retry` sends it again",
    "renewed": "{query}: its reference data have changed, and are read again",
    "not_renewed": "{query}: its reference data cannot be read again; the old rows stay in use",
    "file_set_aside": "{query}: set aside {detail}; `millstream files retry` reads it again",
    "file_changed": "{query}: {detail} was changed after it was read; "
    "the rows that were read stay, and the change is not read",
    "history_set_aside": "the history of the app is damaged, and another one is begun: {detail}",
    "reaction_failed": "a function that reacts to events has failed",
    "export_failed": "traces or lineage cannot be sent: {detail}",
    "history_stopped": "the history of the app is not written",
    "history_resumed": "the history of the app is written again",
}


def event_lines(event: EventView) -> str | None:
    """Return what happened; None for an event that is not shown."""
    if event.kind not in _WORDS:
        return None
    sentence = "! " + _WORDS[event.kind].format(query=event.query, detail=event.detail)
    if event.fault is None:
        return sentence
    return (
        sentence
        + "\n"
        + "\n".join(f"  {line}" for line in text.format_fault(event.fault).splitlines())
    )

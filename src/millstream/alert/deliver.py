"""The deliverer: reads new rows from the outboxes and sends them to their destinations."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.alert.deliveries import Deliveries
from millstream.alert.destination import NotSentError, mark_of, pause_s
from millstream.alert.identity import Identity
from millstream.alert.objectives import OBJECTIVES, OBJECTIVES_KEY, objective_row
from millstream.alert.outbox import NewRows, Outbox, Position
from millstream.crash import reach
from millstream.errors import MillstreamError, OvertakenError, concealed
from millstream.model.duration import parse_duration
from millstream.observe import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.alert.deliveries import Due
    from millstream.lake.home import Home
    from millstream.model.dataset import Alert
    from millstream.model.destination import Courier, Destination
    from millstream.observe.record import EventRecord

_LOOK_EVERY_S = 0.2
_MOST_AT_ONCE = 8
_WAITS_AT_END_S = 10.0
"""How long the end of a run waits for destinations that fail, and one that is stopped for any.

What is left is sent by the next run.
"""
_OBJECTIVES_RETRIED_FOR = timedelta(days=1)
_REWORDED = (
    r"a row has text that is not UTF-8, or a time outside the years 1 to 9999: such bytes are sent "
    r"as \xff, such times as text"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One alert on its way to one destination."""

    alert: str
    destination: str
    courier: Courier
    retry_for: timedelta


class Deliverer:
    """All alerts of a run; while it is started, in threads of its own."""

    def __init__(
        self,
        app: str,
        home: Home,
        epoch: int,
        *,
        hold: Callable[[], None],
        report: Callable[[Event], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._app, self._home, self._hold, self._report, self._now = app, home, hold, report, now
        self._deliveries = Deliveries(home.alerts, epoch)
        self._outboxes: dict[str, tuple[Identity, Outbox, Sequence[str]]] = {}
        self._objectives_to: Sequence[str] = ()
        self._lines: list[Line] = []
        self._halt = threading.Event()
        self._thread: threading.Thread | None = None
        self._reported: set[tuple[str, str]] = set()

    def add(self, alert: Alert, event_time: str | None) -> None:
        """Add an alert; its cooldown is measured in `event_time`."""
        cooldown = parse_duration(alert.cooldown) if alert.cooldown else None
        identity = Identity(self._app, alert.name, alert.key, cooldown, event_time)
        marks = [mark_of(destination) for destination in alert.to]
        names = self._deliveries.name_destinations(alert.name, marks)
        self._outboxes[alert.name] = identity, Outbox(self._home.table(alert.name)), names
        for name, destination in zip(names, alert.to, strict=True):
            courier = destination.courier(self._home.logs)
            self._lines.append(Line(alert.name, name, courier, parse_duration(alert.retry_for)))

    def add_objectives(self, to: Sequence[Destination]) -> None:
        """Add the destinations at which it is reported that objectives are not met."""
        marks = [mark_of(destination) for destination in to]
        self._objectives_to = self._deliveries.name_destinations(OBJECTIVES, marks)
        for name, destination in zip(self._objectives_to, to, strict=True):
            courier = destination.courier(self._home.logs)
            self._lines.append(Line(OBJECTIVES, name, courier, _OBJECTIVES_RETRIED_FOR))

    def enter_objectives(self, records: Sequence[EventRecord]) -> bool:
        """Record events of objectives for delivery; return whether they are recorded.

        Raises:
            OvertakenError: A later driver was here.
        """
        rows = tuple(objective_row(record) for record in records)
        if not rows or not self._objectives_to:
            return True
        new_rows = NewRows(rows, Position(OBJECTIVES, 0), is_whole=False)
        identity = Identity(self._app, OBJECTIVES, OBJECTIVES_KEY)
        try:
            self._deliveries.enter(identity, new_rows, self._objectives_to, self._now())
        except OvertakenError:
            raise
        except Exception as error:
            self._report_unexpected(error, OBJECTIVES)
            return False
        return True

    def drop_all_but(self, alerts: Sequence[str]) -> None:
        """Mark pending notices of alerts that are no longer declared as dead.

        Raises:
            OvertakenError: A later driver was here.
        """
        self._deliveries.drop_all_but((*alerts, OBJECTIVES))

    def start(self) -> None:
        """Deliver from now on, until `finish` or `close`."""
        self._thread = threading.Thread(target=self._work, daemon=True, name="alerts")
        self._thread.start()

    def drain(self, *, within_s: float = 0, at_most_s: float = math.inf) -> None:
        """Send all pending notices, to all destinations at once; retry those that fail for a time.

        Args:
            within_s: After this time, a destination that fails is not tried again.
            at_most_s: After this time, no destination is tried.

        Raises:
            OvertakenError: A later driver was here.
        """
        now = time.monotonic()
        until, end = now + within_s, now + at_most_s
        self.read_outboxes()
        if not self._lines:
            return
        with ThreadPoolExecutor(len(self._lines), thread_name_prefix="alerts") as pool:
            sent = [pool.submit(self._send_all, line, until, end) for line in self._lines]
        for each in sent:
            each.result()

    def finish(self) -> None:
        """Send what is left at the end of a run; what fails then is sent by the next run."""
        self._join()
        self.drain(within_s=_WAITS_AT_END_S)

    def close(self) -> None:
        """Let deliveries that are under way finish, send what can be sent in time, and close."""
        try:
            if self._join():
                self.drain(at_most_s=_WAITS_AT_END_S)
        except OvertakenError:
            pass
        finally:
            for line in self._lines:
                line.courier.close()
            self._deliveries.close()

    def _join(self) -> bool:
        """Stop the threads; return whether there were any."""
        thread, self._thread = self._thread, None
        self._halt.set()
        if thread is not None:
            thread.join()
        return thread is not None

    def read_outboxes(self) -> None:
        """Record the new rows of every outbox for delivery.

        Raises:
            OvertakenError: A later driver was here.
        """
        for name in self._outboxes:
            # An outbox that cannot be read does not stop the others.
            try:
                self._read_outbox(name)
            except OvertakenError:
                raise
            except Exception as error:
                self._report_unexpected(error, name)

    def _read_outbox(self, name: str) -> None:
        identity, outbox, destinations = self._outboxes[name]
        for new_rows in outbox.since(self._deliveries.position(name)):
            self._deliveries.enter(identity, new_rows, destinations, self._now())
            reach("alert_taken", self._home.path, name, new_rows.position.version)
            if new_rows.is_lossy:
                self._report_once(name, _REWORDED)

    def _send_all(self, line: Line, until: float, end: float) -> None:
        """Send a destination all that waits for it; pause when it fails."""
        rest_s = 0.0
        while (next_at := self._deliveries.next_at(line.alert, line.destination)) is not None:
            wait = max(next_at - self._now(), rest_s)
            if time.monotonic() + max(wait, 0) > (until if wait > 0 else end):
                return
            time.sleep(max(wait, 0))
            rest_s = self._send_until_failure(line, end)

    def _send_until_failure(self, line: Line, end: float) -> float:
        """Send what is due; return how long to pause then."""
        # What fails is due later: this ends.
        while time.monotonic() <= end and (due := self._due(line)) is not None:
            if rest_s := self._send_one(line, due):
                return rest_s
        return 0.0

    def _send_one(self, line: Line, due: Due) -> float:
        """Send a notice; return how long to pause if it fails, else 0."""
        if due.is_silenced:
            self._deliveries.note(due, line.destination, "silenced", done_at=self._now())
            return 0.0
        # The last moment to find out that another driver sends it.
        self._hold()
        self._deliveries.check_fence()
        began = self._now()
        reach("alert_begun", self._home.path, line.alert)
        try:
            line.courier.send(due.notice)
        except NotSentError as refusal:
            return self._failed(line, due, refusal, began)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            return self._failed(line, due, NotSentError(why), began)
        reach("alert_sent", self._home.path, line.alert)
        facts = {"attempts": due.attempts + 1, "done_at": self._now(), "reason": ""}
        self._deliveries.note(due, line.destination, "delivered", **facts)
        self._reported.discard((line.alert, line.destination))
        reach("alert_told", self._home.path, line.alert)
        return 0.0

    def _failed(self, line: Line, due: Due, refusal: NotSentError, began: float) -> float:
        attempts = due.attempts + 1
        first_at = due.first_at if due.first_at is not None else began
        rest_s = pause_s(attempts, due.notice.id, refusal.after)
        next_at = began + rest_s
        is_dead = not refusal.again or next_at - first_at > line.retry_for.total_seconds()
        state, reason = "dead" if is_dead else "pending", concealed(str(refusal))
        facts = {"attempts": attempts, "first_at": first_at, "next_at": next_at, "reason": reason}
        self._deliveries.note(due, line.destination, state, **facts)
        failure = f"{line.destination} did not receive {due.notice.id[:12]}: {reason}"
        if is_dead:
            self._report(Event("alert_dead", line.alert, failure))
        elif (of_line := (line.alert, line.destination)) not in self._reported:
            self._reported.add(of_line)
            self._report(Event("alert_waits", line.alert, f"{failure}; it is tried again"))
        # A final refusal is about the notice, not about the destination.
        return rest_s if refusal.again else 0.0

    def _work(self) -> None:
        busy: set[Line] = set()
        with ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="alerts") as pool:
            while not self._halt.wait(_LOOK_EVERY_S):
                try:
                    self.read_outboxes()
                    for line in (each for each in self._lines if each not in busy):
                        if self._due(line) is not None:
                            busy.add(line)
                            pool.submit(self._work_line, line, busy)
                except OvertakenError:
                    return
                except Exception as error:
                    self._report_unexpected(error)

    def _work_line(self, line: Line, busy: set[Line]) -> None:
        try:
            while not self._halt.is_set() and (due := self._due(line)) is not None:
                self._send_one(line, due)
        except OvertakenError:
            self._halt.set()
        except Exception as error:
            self._report_unexpected(error)
        finally:
            busy.discard(line)

    def _due(self, line: Line) -> Due | None:
        return self._deliveries.due(line.alert, line.destination, self._now())

    def _report_unexpected(self, error: Exception, about: str = "alerts") -> None:
        """Report, once, an error that should not happen; the next look tries again."""
        is_ours = isinstance(error, MillstreamError)
        self._report_once(about, str(error) if is_ours else f"{type(error).__name__}: {error}")

    def _report_once(self, about: str, detail: str) -> None:
        if (about, detail) not in self._reported:
            self._reported.add((about, detail))
            self._report(Event("alert_waits", about, concealed(detail)))

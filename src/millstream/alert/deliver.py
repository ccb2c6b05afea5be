"""The deliverer: takes rows out of the outboxes and tells them to their destinations."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.alert.deliveries import Deliveries
from millstream.alert.destination import NotToldError, mark_of, pause_s
from millstream.alert.notice import Identity
from millstream.alert.outbox import Outbox
from millstream.crash import reach
from millstream.errors import MillstreamError, OvertakenError, concealed
from millstream.model.duration import parse_duration
from millstream.observe import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from millstream.alert.deliveries import Due
    from millstream.lake.home import Home
    from millstream.model.dataset import Alert
    from millstream.model.destination import Courier

_LOOK_EVERY_S = 0.2
_MOST_AT_ONCE = 8
_WAITS_AT_END_S = 10.0
"""How long the end of a run waits for destinations that fail, and one that is stopped for any.

What is left is told next time.
"""
_REWORDED = (
    r"a row has text that is not UTF-8, or a time outside the years 1 to 9999: such bytes are told "
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
        tell: Callable[[Event], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._app, self._home, self._hold, self._tell, self._now = app, home, hold, tell, now
        self._deliveries = Deliveries(home.alerts, epoch)
        self._outboxes: dict[str, tuple[Identity, Outbox, Sequence[str]]] = {}
        self._lines: list[Line] = []
        self._halt = threading.Event()
        self._thread: threading.Thread | None = None
        self._told: set[tuple[str, str]] = set()

    def add(self, alert: Alert, event_time: str | None) -> None:
        """Take an alert on; by which column its cooldown goes, whoever has its answer knows."""
        cooldown = parse_duration(alert.cooldown) if alert.cooldown else None
        identity = Identity(self._app, alert.name, alert.key, cooldown, event_time)
        marks = [mark_of(destination) for destination in alert.to]
        names = self._deliveries.name_destinations(alert.name, marks)
        self._outboxes[alert.name] = identity, Outbox(self._home.table(alert.name)), names
        for name, destination in zip(names, alert.to, strict=True):
            courier = destination.courier(self._home.logs)
            self._lines.append(Line(alert.name, name, courier, parse_duration(alert.retry_for)))

    def keep_to(self, alerts: Sequence[str]) -> None:
        """Put aside what waits of alerts that are not declared any more.

        Raises:
            OvertakenError: A later driver was here.
        """
        self._deliveries.keep_to(alerts)

    def start(self) -> None:
        """Deliver from now on, until `finish` or `close`."""
        self._thread = threading.Thread(target=self._work, daemon=True, name="alerts")
        self._thread.start()

    def drain(self, *, within_s: float = 0, at_most_s: float = math.inf) -> None:
        """Tell all there is, to all destinations at once; wait so long for those that fail.

        Args:
            within_s: After this time, who fails is not asked again.
            at_most_s: After this time, nobody is.

        Raises:
            OvertakenError: A later driver was here.
        """
        now = time.monotonic()
        until, end = now + within_s, now + at_most_s
        self.take_in()
        if not self._lines:
            return
        with ThreadPoolExecutor(len(self._lines), thread_name_prefix="alerts") as pool:
            told = [pool.submit(self._tell_out, line, until, end) for line in self._lines]
        for each in told:
            each.result()

    def finish(self) -> None:
        """Tell what is left at the end of a run; what fails then is told by the next one."""
        self._join()
        self.drain(within_s=_WAITS_AT_END_S)

    def close(self) -> None:
        """Let deliveries that are under way finish, tell what is there in time, and let go."""
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
        """Stop the threads; tell whether there were any."""
        thread, self._thread = self._thread, None
        self._halt.set()
        if thread is not None:
            thread.join()
        return thread is not None

    def take_in(self) -> None:
        """Note what the outboxes have that is new.

        Raises:
            OvertakenError: A later driver was here.
        """
        for name in self._outboxes:
            # What one outbox cannot give does not keep the others from being told.
            try:
                self._take_in(name)
            except OvertakenError:
                raise
            except Exception as error:
                self._wonder(error, name)

    def _take_in(self, name: str) -> None:
        identity, outbox, destinations = self._outboxes[name]
        for news in outbox.since(self._deliveries.position(name)):
            self._deliveries.enter(identity, news, destinations, self._now())
            reach("alert_taken", self._home.path, name, news.position.version)
            if news.is_reworded:
                self._once(name, _REWORDED)

    def _tell_out(self, line: Line, until: float, end: float) -> None:
        """Tell a destination all that waits for it, and leave it alone a while when it fails."""
        rest_s = 0.0
        while (next_at := self._deliveries.next_at(line.alert, line.destination)) is not None:
            wait = max(next_at - self._now(), rest_s)
            if time.monotonic() + max(wait, 0) > (until if wait > 0 else end):
                return
            time.sleep(max(wait, 0))
            rest_s = self._tell_until_it_fails(line, end)

    def _tell_until_it_fails(self, line: Line, end: float) -> float:
        """Tell what is due; give how long the destination is to be left alone then."""
        # What fails is due later: this ends.
        while time.monotonic() <= end and (due := self._due(line)) is not None:
            if rest_s := self._tell_one(line, due):
                return rest_s
        return 0.0

    def _tell_one(self, line: Line, due: Due) -> float:
        """Tell a notice; give how long to leave the destination alone if it fails, else 0."""
        if due.is_silenced:
            self._deliveries.note(due, line.destination, "silenced", done_at=self._now())
            return 0.0
        # The last moment to find out that another driver tells it.
        self._hold()
        self._deliveries.hold()
        began = self._now()
        try:
            line.courier.tell(due.notice)
        except NotToldError as refusal:
            return self._failed(line, due, refusal, began)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            return self._failed(line, due, NotToldError(why), began)
        reach("alert_sent", self._home.path, line.alert)
        facts = {"attempts": due.attempts + 1, "done_at": self._now(), "reason": ""}
        self._deliveries.note(due, line.destination, "delivered", **facts)
        self._told.discard((line.alert, line.destination))
        reach("alert_told", self._home.path, line.alert)
        return 0.0

    def _failed(self, line: Line, due: Due, refusal: NotToldError, began: float) -> float:
        attempts = due.attempts + 1
        first_at = due.first_at if due.first_at is not None else began
        rest_s = pause_s(attempts, due.notice.id, refusal.after)
        next_at = began + rest_s
        is_dead = not refusal.again or next_at - first_at > line.retry_for.total_seconds()
        state, reason = "dead" if is_dead else "pending", concealed(str(refusal))
        facts = {"attempts": attempts, "first_at": first_at, "next_at": next_at, "reason": reason}
        self._deliveries.note(due, line.destination, state, **facts)
        told = f"{line.destination} is not told {due.notice.id[:12]}: {reason}"
        if is_dead:
            self._tell(Event("alert_dead", line.alert, told))
        elif (of_line := (line.alert, line.destination)) not in self._told:
            self._told.add(of_line)
            self._tell(Event("alert_waits", line.alert, f"{told}; it is tried again"))
        # An answer that cannot change is about the notice, not about who gives it.
        return rest_s if refusal.again else 0.0

    def _work(self) -> None:
        busy: set[Line] = set()
        with ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="alerts") as pool:
            while not self._halt.wait(_LOOK_EVERY_S):
                try:
                    self.take_in()
                    for line in (each for each in self._lines if each not in busy):
                        if self._due(line) is not None:
                            busy.add(line)
                            pool.submit(self._tell_line, line, busy)
                except OvertakenError:
                    return
                except Exception as error:
                    self._wonder(error)

    def _tell_line(self, line: Line, busy: set[Line]) -> None:
        try:
            while not self._halt.is_set() and (due := self._due(line)) is not None:
                self._tell_one(line, due)
        except OvertakenError:
            self._halt.set()
        except Exception as error:
            self._wonder(error)
        finally:
            busy.discard(line)

    def _due(self, line: Line) -> Due | None:
        return self._deliveries.due(line.alert, line.destination, self._now())

    def _wonder(self, error: Exception, about: str = "alerts") -> None:
        """Tell, once, of what should not happen; it is tried again at the next look."""
        is_ours = isinstance(error, MillstreamError)
        self._once(about, str(error) if is_ours else f"{type(error).__name__}: {error}")

    def _once(self, about: str, told: str) -> None:
        if (about, told) not in self._told:
            self._told.add((about, told))
            self._tell(Event("alert_waits", about, concealed(told)))

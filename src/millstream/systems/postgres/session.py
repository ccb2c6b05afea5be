"""Postgres sessions: how one begins, how long it waits, and what its errors mean."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from millstream.errors import fault
from millstream.settings.secret import revealed
from millstream.systems.postgres.settings import address_fault

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    import psycopg

    from millstream.serve.fence import Place
    from millstream.systems.postgres.settings import Postgres

_LINE = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
}
"""A silent peer is given up after half a minute, not after a quarter of an hour."""
_SESSION = """
SET synchronous_commit TO on;
SET timezone TO 'UTC';
SET lock_timeout TO '60s';
SET idle_in_transaction_session_timeout TO '10min';
SET client_min_messages TO error;
"""
_LOOKUP = """
SET lock_timeout TO '3s';
SET statement_timeout TO '5s';
"""
"""A look-up has a user waiting, and can be repeated."""
_ANSWERED_WITHIN_S = 8.0
"""Then not even the server's own timeout has worked."""
_RETRIED = ("40001", "40P01", "55P03")
"""Serialization failure, deadlock, lock not available in time."""
_LOGIN = ("28", "3D")
"""Wrong user or password; no such database."""
_STARTING_OR_ENDING = "57P"


class BusyError(Exception):
    """Another transaction was in the way; a retry may succeed."""


@cache
def _impatient() -> type[psycopg.Connection[Any]]:
    """Return a class of connections that end a wait that takes too long."""
    import psycopg

    class Impatient(psycopg.Connection[Any]):
        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            return super().wait(_within(gen, _ANSWERED_WITHIN_S), *args, **options)

    return Impatient


def _within(waits: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """Forward what psycopg waits for, with a deadline: it wakes several times a second."""
    until = time.monotonic() + seconds
    try:
        wanted = next(waits)
        while True:
            come = yield wanted
            if not come and time.monotonic() > until:
                raise TimeoutError
            wanted = waits.send(come)
    except StopIteration as end:
        return end.value


def connect(sink: Postgres, place: Place, *, is_lookup: bool = False) -> psycopg.Connection[Any]:
    """Log in.

    Args:
        sink: Where; timeouts in its address take precedence.
        place: What errors name.
        is_lookup: Whether it is for look-ups, which must answer soon.

    Raises:
        StoreFailedError: The address cannot be read.
        STORE_LOGIN: The server refuses this user.
        StoreUnreachableError: No server answers.
    """
    try:
        import psycopg
    except ImportError as error:
        raise fault(
            "EXTRA_MISSING", what="ms.Postgres", module="psycopg", extra="postgres"
        ) from error
    if why := address_fault(sink.dsn):
        raise fault("STORE_FAILED", store=place.name, why=why)
    with translating_errors(place):
        dsn = revealed(sink.dsn)
        text = psycopg.conninfo.conninfo_to_dict(dsn)
        line: dict[str, Any] = {name: value for name, value in _LINE.items() if name not in text}
        kind = _impatient() if is_lookup else psycopg.Connection[Any]
        db = kind.connect(dsn, autocommit=True, application_name="millstream", **line)
        db.execute(_SESSION + (_LOOKUP if is_lookup else ""))
    return db


def message_of(error: psycopg.Error) -> str:
    """Return the server's message, in one line."""
    text = error.diag.message_primary or str(error).strip()
    return " ".join(text.split())


@contextmanager
def translating_errors(place: Place) -> Iterator[None]:
    """Translate errors of Postgres into errors of Millstream."""
    import psycopg

    try:
        yield
    except TimeoutError as error:
        why = f"nothing was heard for {_ANSWERED_WITHIN_S:g} seconds"
        raise fault("STORE_UNREACHABLE", store=place.name, why=why) from error
    except psycopg.Error as error:
        state, why = error.sqlstate or "", message_of(error)
        if state in _RETRIED:
            raise BusyError from error
        if state.startswith(_LOGIN) or "authentication failed" in why:
            raise fault("STORE_LOGIN", store=place.name, why=why) from error
        is_gone = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        if (is_gone and not state) or state.startswith((_STARTING_OR_ENDING, "08", "53")):
            raise fault("STORE_UNREACHABLE", store=place.name, why=why) from error
        raise fault("STORE_FAILED", store=place.name, why=why) from error

"""A session of Postgres: how it is begun, how long it waits, and what its errors mean."""

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
"""A peer that says nothing any more is given up after half a minute, not after a quarter hour."""
_SESSION = """
SET synchronous_commit TO on;
SET timezone TO 'UTC';
SET lock_timeout TO '60s';
SET idle_in_transaction_session_timeout TO '10min';
SET client_min_messages TO error;
"""
_ASKING = """
SET lock_timeout TO '3s';
SET statement_timeout TO '5s';
"""
"""Whoever looks a row up waits for an answer, and may ask again."""
_ANSWERED_WITHIN_S = 8.0
"""Then the server does not even keep to the time it was given."""
_RETRIED = ("40001", "40P01", "55P03")
"""Serialization failure, deadlock, a lock that was not to be had in time."""
_LOGIN = ("28", "3D")
"""Wrong user or password; no such database."""
_STARTING_OR_ENDING = "57P"


class BusyError(Exception):
    """Another transaction was in the way; to try again may succeed."""


@cache
def _impatient() -> type[psycopg.Connection[Any]]:
    """Give a connection that ends a wait that takes too long, whatever became of the server."""
    import psycopg

    class Impatient(psycopg.Connection[Any]):
        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            return super().wait(_within(gen, _ANSWERED_WITHIN_S), *args, **options)

    return Impatient


def _within(waits: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """Pass on what psycopg waits for; it tells several times a second that nothing has come."""
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


def connect(sink: Postgres, place: Place, *, is_asking: bool = False) -> psycopg.Connection[Any]:
    """Log in.

    Args:
        sink: Where; what its address says of waiting holds.
        place: What errors name.
        is_asking: Whether it is for look-ups, which nobody waits for long.

    Raises:
        StoreFailedError: The address is none.
        STORE_LOGIN: The server does not let this user in.
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
    with told(place):
        dsn = revealed(sink.dsn)
        said = psycopg.conninfo.conninfo_to_dict(dsn)
        line: dict[str, Any] = {name: value for name, value in _LINE.items() if name not in said}
        kind = _impatient() if is_asking else psycopg.Connection[Any]
        db = kind.connect(dsn, autocommit=True, application_name="millstream", **line)
        db.execute(_SESSION + (_ASKING if is_asking else ""))
    return db


def words(error: psycopg.Error) -> str:
    """Give what the server says, in one line."""
    said = error.diag.message_primary or str(error).strip()
    return " ".join(said.split())


@contextmanager
def told(place: Place) -> Iterator[None]:
    """Have the errors of Postgres told as what they mean."""
    import psycopg

    try:
        yield
    except TimeoutError as error:
        why = f"nothing was heard for {_ANSWERED_WITHIN_S:g} seconds"
        raise fault("STORE_UNREACHABLE", store=place.name, why=why) from error
    except psycopg.Error as error:
        state, why = error.sqlstate or "", words(error)
        if state in _RETRIED:
            raise BusyError from error
        if state.startswith(_LOGIN) or "authentication failed" in why:
            raise fault("STORE_LOGIN", store=place.name, why=why) from error
        is_gone = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        if (is_gone and not state) or state.startswith((_STARTING_OR_ENDING, "08", "53")):
            raise fault("STORE_UNREACHABLE", store=place.name, why=why) from error
        raise fault("STORE_FAILED", store=place.name, why=why) from error

"""Hashes of Redis."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.errors import fault
from millstream.serve.fence import Place
from millstream.serve.option import as_names, unusable_options
from millstream.settings.secret import revealed
from millstream.systems.address import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from millstream.errors import Location, MillstreamError
    from millstream.model.trigger import Trigger
    from millstream.serve.fence import Driver
    from millstream.serve.shape import Shape
    from millstream.serve.store import Store, StoreReader

_SCHEMES = ("redis://", "rediss://", "unix://")
_UNKNOWN = re.compile(r"unexpected keyword argument '(\w+)'")


@dataclass(frozen=True, slots=True)
class Redis:
    """A hash per key, named `prefix:key`; a column that is null is not in the hash.

    Readers see whole rows, and whole batches of up to 1,000; of a larger one, 1,000 at a time.
    """

    url: str
    """An address such as `redis://:password@host:6379/0`; never printed in full."""
    key: Sequence[str] = ()
    prefix: str = ""
    """The name of the dataset, unless said otherwise.

    With `shop` for one and `shop:vip` for another, `vip:7` of the first would be `7` of the other.
    """
    newest_by: str | None = None
    """Of two rows with one key, the one with the greater value here stands."""
    delete_when: str | None = None
    """A condition in SQL: a row that meets it deletes the one with its key."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", as_names(self.key))
        object.__setattr__(self, "url", guarded(self.url))

    @property
    def evolve(self) -> bool:
        """Hashes have whatever fields they are given."""
        return True

    def guarantee(self, trigger: Trigger) -> str:  # noqa: ARG002
        """Each row once."""
        return "exactly once"

    def faults(self, serve: str, mode: str, at: Location) -> Iterator[MillstreamError]:
        """An address that is none, no key, or a mode that replaces everything."""
        if why := address_fault(self.url):
            use = "write it as redis://:password@host:6379/0"
            yield fault("STORE_MODE", at=at, serve=serve, store="Redis", why=why, use=use)
        if not self.key:
            why, use = "every row is kept under its key", 'say which columns it is: key=["…"]'
            yield fault("STORE_MODE", at=at, serve=serve, store="Redis", why=why, use=use)
        if mode == "complete":
            why = "mode='complete' replaces all rows in one step, and Redis changes them one by one"
            use = "use mode='update', or serve it to SQLite or Postgres"
            yield fault("STORE_MODE", at=at, serve=serve, store="Redis", why=why, use=use)
        else:
            yield from unusable_options("Redis", self, serve, mode, at)

    def reach_sink(self, spark: SparkSession, serve: str, at: Location) -> None:  # noqa: ARG002
        """Log in once."""
        from millstream.systems.redis.sink import connect

        connect(self, self.place(serve)).close()

    def open(self, shape: Shape, driver: Driver) -> Store:
        """Log in."""
        from millstream.systems.redis.sink import RedisStore

        return RedisStore(self, shape, driver)

    def reader(self, dataset: str) -> StoreReader:
        """Log in for look-ups."""
        from millstream.systems.redis.sink import RedisReader

        return RedisReader(self, dataset)

    def place(self, dataset: str) -> Place:
        """Name the keys, as errors do."""
        prefix = self.prefix or dataset
        forget = (
            f"`redis-cli --scan --pattern '{prefix}:*' | xargs redis-cli DEL {fence_key(prefix)}`"
        )
        return Place(f"Redis keys '{prefix}:*' at {self.url}", forget)


def fence_key(prefix: str) -> str:
    """Name the hash that is the fence of a prefix."""
    return f"millstream:fence:{prefix}"


def address_fault(url: str) -> str:
    """Say what is wrong with an address, as far as its server need not be asked.

    Nothing of the address is repeated: where its password is, is not known if it cannot be read.
    """
    if not revealed(url).startswith(_SCHEMES):
        return f"its address does not begin with {', '.join(_SCHEMES)}"
    try:
        import redis
    except ImportError:
        return ""
    try:
        redis.ConnectionPool.from_url(revealed(url)).make_connection()
    except ValueError:
        return "the port, or an option, of its address is no value that Redis's client takes"
    except TypeError as error:
        option = _UNKNOWN.search(str(error))
        return f"its address has an option {option[1] if option else 'that'!r} that does not exist"
    return ""

"""Redis hashes as a store: a script per chunk checks the fence, then writes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.errors import fault
from millstream.lake.fence import Decision, Fence
from millstream.serve.fence import admit_batch, take_fence
from millstream.serve.shape import GONE, columns_from_json, columns_to_json
from millstream.serve.store import WriteResult, salvage, split_keyless
from millstream.serve.value import as_texts, row_from_store, scalar_of
from millstream.settings.secret import revealed
from millstream.systems.redis.settings import address_fault, fence_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from millstream.lake.fence import PendingBatch
    from millstream.serve.fence import Driver, Place
    from millstream.serve.shape import Column, Shape
    from millstream.serve.store import Refused, Rows, Settle
    from millstream.systems.redis.settings import Redis

_CHUNK = 1000
"""Rows that one script writes; no other client is served meanwhile, which takes about 2 ms."""
_ANSWERS_WITHIN_S = 10
_TRIES = 4
_PAUSE_S = 0.05
_WHOLE = ("byte", "short", "integer", "long")
_REAL = ("float", "double")

# A row is written as a whole and not added to, so that a chunk may be written again: the batch is
# there when its last script says so, and not before.
_WRITE = """
local held = redis.call('HMGET', KEYS[1], 'owner', 'epoch', 'batch')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] or held[3] ~= ARGV[3] then return 0 end
local newest, order = ARGV[5], ARGV[6]
-- Lua would make floating-point numbers of them, which are not exact.
local function scan(text)
  local sign, whole, part, power = string.match(text, '^(-?)(%d*)%.?(%d*)[eE]?([+-]?%d*)$')
  local digits = string.gsub((whole or '') .. (part or ''), '0+$', '')
  local first = string.find(digits, '[1-9]')
  if not first then return 0, 0, '' end
  local size = #whole - first + (tonumber(power) or 0)
  return sign == '-' and -1 or 1, size, string.sub(digits, first)
end
local function is_less(new, old)
  local sign, size, digits = scan(new)
  local old_sign, old_size, old_digits = scan(old)
  if sign ~= old_sign then return sign < old_sign end
  if size ~= old_size then return size * sign < old_size * sign end
  if sign < 0 then return old_digits < digits end
  return digits < old_digits
end
local function is_older(new, old)
  if not old or not new then return not new and old end
  if order == 'exact' then return is_less(new, old) end
  if order == 'real' then return tonumber(new) < tonumber(old) end
  return new < old
end
for _, row in ipairs(cmsgpack.unpack(ARGV[4])) do
  local key, fields, version = row[1], row[2], row[3]
  if newest == '' or not is_older(version, redis.call('HGET', key, newest)) then
    redis.call('DEL', key)
    if #fields > 0 then redis.call('HSET', key, unpack(fields)) end
  end
end
if #ARGV > 6 then
  redis.call('HSET', KEYS[1], 'batch', ARGV[7], 'checkpoint', ARGV[8], 'digest', ARGV[9],
             'note', ARGV[10])
end
return 1
"""


class RedisStore:
    """Hashes open for writing."""

    def __init__(self, sink: Redis, shape: Shape, driver: Driver) -> None:
        self.place = sink.place(shape.dataset)
        self._shape, self._driver, self._prefix = shape, driver, sink.prefix or shape.dataset
        self._fence_key = fence_key(self._prefix)
        columns = {column.name: column for column in shape.columns}
        self._key_columns = [columns[name] for name in shape.key]
        newest = columns.get(shape.newest_by or "")
        self._newest = newest
        self._db = connect(sink, self.place)
        self._script = self._db.register_script(_WRITE)

    def take(self) -> Fence:
        """Write this driver's epoch beside the hashes."""
        import redis

        columns = columns_to_json(self._shape.columns)
        with _translating_errors(self.place), self._db.pipeline() as pipe:
            while True:
                try:
                    pipe.watch(self._fence_key)
                    fence = take_fence(
                        _fence_from(pipe.hgetall(self._fence_key)), self._driver, self.place
                    )
                    pipe.multi()
                    pipe.hset(self._fence_key, mapping={**asdict(fence), "columns": columns})
                    pipe.execute()
                except redis.WatchError:
                    continue
                return fence

    def fence(self) -> Fence | None:
        """Look at the fence."""
        with _translating_errors(self.place):
            return _fence_from(self._db.hgetall(self._fence_key))

    def write(self, pending: PendingBatch, rows: Rows, settle: Settle) -> WriteResult:
        """Write a batch chunk by chunk; the last script moves the fence."""
        held, decision = admit_batch(self.fence(), self._driver, pending, self.place)
        if decision is not Decision.APPLY:
            return WriteResult(decision, held)
        refused: list[Refused] = []
        # Parts are collected: readers see a batch of up to a chunk as a whole, however it comes.
        waiting: list[Any] = []
        for part in rows():
            kept, lacking = split_keyless(part, self._shape.key)
            refused += lacking
            for first in range(0, kept.num_rows, _CHUNK):
                refused += salvage(
                    kept.slice(first, _CHUNK), lambda some: waiting.extend(self._rows(some))
                )
                if len(waiting) > _CHUNK:
                    self._run(held, pending, waiting[:_CHUNK])
                    del waiting[:_CHUNK]
        fence = held.with_batch(pending, settle(refused))
        self._run(held, pending, waiting, fence)
        return WriteResult(decision, fence, tuple(refused))

    def close(self) -> None:
        """Log out."""
        self._db.close()

    def _run(
        self, held: Fence, pending: PendingBatch, rows: list[Any], fence: Fence | None = None
    ) -> None:
        """Run the script that writes rows, and with the last the fence, if it is still `held`.

        If the reply was lost and the script was sent again, the fence has the batch already.
        """
        newest = self._newest.name if self._newest else ""
        values = [held.owner, held.epoch, held.batch, msgspec.msgpack.encode(rows)]
        values += [newest, _order(self._newest)]
        if fence is not None:
            values += [fence.batch, fence.checkpoint, fence.digest, fence.note]
        with _translating_errors(self.place):
            while not self._script([self._fence_key], values):
                _, decision = admit_batch(self.fence(), self._driver, pending, self.place)
                if decision is not Decision.APPLY:
                    return

    def _rows(self, rows: pa.Table) -> list[Any]:
        """Return each row as its key, its alternating fields and values, and its version."""
        keys = as_texts(rows, self._key_columns)
        gone = rows.column(GONE).to_pylist() if GONE in rows.column_names else [False] * len(keys)
        versions = as_texts(rows, [self._newest]) if self._newest else [(None,)] * len(keys)
        packed = []
        for key, values, is_gone, (version,) in zip(
            keys, as_texts(rows, self._shape.columns), gone, versions, strict=True
        ):
            pairs = [
                each
                for name, value in zip(self._shape.names, values, strict=True)
                if value is not None
                for each in (name, _raw(value) if isinstance(value, bytes) else value)
            ]
            packed.append((_key(self._prefix, key), [] if is_gone else pairs, version))
        return packed


class RedisReader:
    """Hashes open for look-ups."""

    def __init__(self, sink: Redis, dataset: str) -> None:
        self._place, self._prefix = sink.place(dataset), sink.prefix or dataset
        self._db = connect(sink, self._place)
        with _translating_errors(self._place):
            found = self._db.hget(fence_key(self._prefix), "columns")
        if found is None:
            self._db.close()
            raise fault("NOTHING_SERVED", store=self._place.name)
        columns = columns_from_json(found.decode())
        self.columns = {column.name: column for column in columns}

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the row of a key."""
        texts = [_text(value, self.columns[name]) for name, value in key.items()]
        with _translating_errors(self._place):
            found = self._db.hgetall(_key(self._prefix, texts))
        if not found:
            return None
        columns = self.columns.values()
        values = (_decoded(found.get(column.name.encode()), column) for column in columns)
        return row_from_store(columns, values, self._place)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _order(column: Column | None) -> str:
    """Return how the script compares the values of a column."""
    if column is not None and (column.is_decimal or column.type in _WHOLE):
        return "exact"
    return "real" if column is not None and column.type in _REAL else "text"


def _raw(value: bytes) -> msgspec.Raw:
    # Lua's MessagePack in Redis knows only the old format, in which bytes and texts are one.
    return msgspec.Raw(b"\xdb" + len(value).to_bytes(4, "big") + value)


def _decoded(value: bytes | None, column: Column) -> Any:
    return value if value is None or column.type == "binary" else value.decode()


def _text(value: Any, column: Column) -> Any:
    scalar = scalar_of(value, column)
    return scalar if isinstance(scalar, str | bytes) else str(scalar)


def _key(prefix: str, values: Sequence[str | bytes]) -> str:
    """Name the hash of a key; values of several columns are escaped, so that names are unique."""
    texts = [value.hex() if isinstance(value, bytes) else value for value in values]
    if len(texts) > 1:
        texts = [text.replace("%", "%25").replace(":", "%3A") for text in texts]
    return ":".join([prefix, *texts])


def _fence_from(found: Mapping[bytes, bytes]) -> Fence | None:
    if not found:
        return None
    held: dict[str, Any] = {name.decode(): value.decode() for name, value in found.items()}
    del held["columns"]
    return Fence(**{**held, "epoch": int(held["epoch"]), "batch": int(held["batch"])})


def connect(sink: Redis, place: Place) -> Any:
    """Log in.

    Raises:
        StoreFailedError: The address cannot be read.
        STORE_LOGIN: The server refuses this user.
        StoreUnreachableError: No server answers.
    """
    try:
        import redis
        from redis.backoff import ExponentialBackoff
        from redis.retry import Retry
    except ImportError as error:
        raise fault("EXTRA_MISSING", what="ms.Redis", module="redis", extra="redis") from error
    if why := address_fault(sink.url):
        raise fault("STORE_FAILED", store=place.name, why=why)
    db = redis.Redis.from_url(
        revealed(sink.url),
        socket_timeout=_ANSWERS_WITHIN_S,
        socket_connect_timeout=_ANSWERS_WITHIN_S,
        # A retried command may have run before: the fence shows it.
        retry=Retry(ExponentialBackoff(cap=1, base=_PAUSE_S), _TRIES),
        retry_on_error=[redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError],
    )
    try:
        with _translating_errors(place):
            db.ping()
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def _translating_errors(place: Place) -> Iterator[None]:
    """Translate errors of Redis into errors of Millstream."""
    import redis.exceptions as of

    try:
        yield
    except (of.AuthenticationError, of.NoPermissionError) as error:
        raise fault("STORE_LOGIN", store=place.name, why=str(error)) from error
    except (of.ConnectionError, of.TimeoutError, of.ReadOnlyError, of.OutOfMemoryError) as error:
        raise fault("STORE_UNREACHABLE", store=place.name, why=str(error)) from error
    except of.RedisError as error:
        raise fault("STORE_FAILED", store=place.name, why=str(error)) from error

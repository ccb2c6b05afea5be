"""The parts of a bucket, read from Spark's map state several at a time.

Spark's client sends a request when it has the reply to the one before, and in a batch of few rows
it waits for most of the time. Its server replies to whatever has arrived, one after the other.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from pyspark.errors import PySparkRuntimeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.streaming.stateful_processor import MapState

_AT_ONCE = 32
"""Open requests: they fit into any socket's buffer, so that neither side waits for ever."""


class Prefetch:
    """Reads parts before they are needed."""

    def __init__(self, entries: MapState) -> None:
        self._entries = entries
        self._expected: Sequence[int] = ()
        self._found: dict[int, bytes] = {}

    def expect(self, parts: Sequence[int], *, at_once: bool) -> None:
        """Set which parts will be read, in order, and whether to read all there are at once."""
        self._expected, self._found = parts, {}
        if at_once:
            self._found = {part: packed for (part,), (packed,) in self._entries.iterator()}

    def read(self, part: int) -> bytes:
        """Return the stored bytes of a part."""
        if part not in self._found:
            later = [p for p in self._expected if p > part and p not in self._found]
            self._found |= read_parts(self._entries, [part, *later[: _AT_ONCE - 1]])
        return self._found.pop(part)


def read_parts(entries: MapState, places: Sequence[int]) -> dict[int, bytes]:
    """Return the stored bytes at each of a few places; all must be stored."""
    api = entries._mapStateClient._stateful_processor_api_client
    for place in places:
        request = _request(entries, place)
        api.sockfile.write(struct.pack("!ii", 0, len(request)))
        api.sockfile.write(request)
    api.sockfile.flush()
    found: dict[int, bytes] = {}
    for place in places:
        status, problem, row = api._receive_proto_message()
        if status:
            raise PySparkRuntimeError(problem)
        assert row, "a part that is stored"
        (found[place],) = api._deserialize_from_bytes(row)
    return found


def _request(entries: MapState, place: int) -> bytes:
    from pyspark.sql.streaming.proto import StateMessage_pb2 as message

    client = entries._mapStateClient
    api = client._stateful_processor_api_client
    key = api._serialize_to_bytes(client.user_key_schema, (place,))
    call = message.MapStateCall(
        stateName=entries._stateName, getValue=message.GetValue(userKey=key)
    )
    request = message.StateVariableRequest(mapStateCall=call)
    return bytes(message.StateRequest(stateVariableRequest=request).SerializeToString())

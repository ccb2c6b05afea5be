"""Values and arguments at the edges of a program; no JVM is needed."""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from millstream.dstream.map_state import StateSpec
from millstream.dstream.node import MapStateNode, SourceNode, batch_time
from millstream.dstream.program import here
from millstream.dstream.source import _to_json
from millstream.dstream.stream import DStream, _to_ms
from millstream.errors import MillstreamError
from millstream.model.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTHING = cast("Any", None)


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
def test_a_batch_in_the_hour_that_comes_twice_keeps_its_time() -> None:
    second = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    ms = round(second.timestamp() * 1000)

    assert _to_ms(batch_time(ms)) == ms
    assert _to_ms(second) == ms


@pytest.mark.usefixtures("in_berlin")
def test_times_and_bytes_of_a_program_land_as_they_are() -> None:
    schema = Schema.parse(
        "at TIMESTAMP, there TIMESTAMP, ntz TIMESTAMP_NTZ, day DATE, raw BINARY, n DECIMAL(4, 2)"
    )
    noon = datetime(2026, 7, 1, 12)  # noqa: DTZ001 - naive, as batch times are
    row = (noon, noon.astimezone(), noon, date(2026, 7, 1), b"\x00\xff", Decimal("1.50"))

    assert json.loads(_to_json(row, schema)) == {
        "at": "2026-07-01T10:00:00+00:00",
        "there": "2026-07-01T10:00:00+00:00",
        "ntz": "2026-07-01T12:00:00",
        "day": "2026-07-01",
        "raw": "AP8=",
        "n": "1.50",
    }


@pytest.mark.parametrize(("window", "slide"), [(2, 0), (2, -1), (0, 1)])
def test_a_duration_of_no_time_is_refused(window: int, slide: int) -> None:
    ssc = cast("Any", SimpleNamespace(sparkContext=None))
    stream: DStream[Any] = DStream(SourceNode((), 1000, here(), NOTHING), ssc)

    with pytest.raises(MillstreamError) as refused:
        stream.window(window, slide)

    assert refused.value.code == "DSTREAM_WINDOW"


def test_an_initial_state_is_read_only_if_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    monkeypatch.setattr(StateSpec, "initial_pairs", lambda spec, context: read.append(context))
    state = SimpleNamespace(before=lambda ms: "a version", write=lambda *given: "written")
    batches = SimpleNamespace(
        context=None, zero_ms=0, state=lambda number: state, rdd=lambda node, ms: None
    )
    source = SourceNode((), 1000, here(), NOTHING)
    node = MapStateNode((source,), 1000, here(), 0, 2, StateSpec.function(lambda k, v, s: None))

    assert node.advance(cast("Any", batches), 2000) == cast("Any", "written")
    assert read == []

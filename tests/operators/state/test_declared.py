"""What is declared of a function with state, and its calls one by one; no Spark."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.faults import raises
from tests.operators.state.chance import NOON, calls_of, reported, text_of, us_of, visits

import millstream as ms
from millstream import check
from millstream.model.schema import Schema
from millstream.model.state import KeptState
from millstream.operators.state.decode import texts_of
from millstream.operators.state.parts import HEAD_AT, Head, Keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.operators.state.parts import TurnResult
    from millstream.operators.state.stateful import Stateful

ANN = '{"user":"ann"}'


def made(function: Any = None, **options: Any) -> Stateful:
    def first(user: str, rows: Sequence[Any], state: Any, timer: ms.Timer) -> None: ...

    given = {"key": "user", "state": "n BIGINT", "emits": "user STRING, n BIGINT", **options}
    return ms.stateful(**given)(function or first)


class Called:
    def __call__(self, user: str, rows: Sequence[Any], state: Any, timer: ms.Timer) -> None: ...


def at(second: int, value: int = 1) -> tuple[int, str]:
    return us_of(second), text_of("ann", second, value)


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("SCHEMA", {"state": "n BIGNT"}),
        ("SCHEMA", {"emits": ""}),
        ("STATEFUL_REFUSED", {"key": []}),
        ("STATEFUL_REFUSED", {"key": None}),
        ("STATEFUL_REFUSED", {"key": [1]}),
        ("STATEFUL_REFUSED", {"initial": [1]}),
        ("STATEFUL_REFUSED", {"function": partial(lambda *given: None, 1)}),
        ("STATEFUL_REFUSED", {"function": Called()}),
        ("OPERATOR_OPTION", {"timout": "1 hour"}),
        ("STATEFUL_REFUSED", {"state": "`a b` INT"}),
        ("STATEFUL_REFUSED", {"state": "clear INT"}),
        ("STATEFUL_REFUSED", {"order": "random"}),
        ("STATEFUL_REFUSED", {"timeout": "soon"}),
        ("STATEFUL_REFUSED", {"ttl": "event 0 seconds"}),
        ("STATEFUL_REFUSED", {"timeout": "1 hour", "ttl": "processing 1 day"}),
        ("STATEFUL_REFUSED", {"timeout": "processing 1 hour"}),
        ("STATEFUL_PARAMETERS", {"function": lambda user, rows, state: None}),
        ("STATEFUL_PARAMETERS", {"function": lambda user, rows, state, timer, more: None}),
        ("STATEFUL_PARAMETERS", {"function": lambda *all_of_them: None}),
    ],
)
def test_what_does_not_fit_is_refused_where_it_is_declared(
    code: str, options: dict[str, Any]
) -> None:
    with raises(code) as caught:
        made(**options)

    assert caught.value.at is not None
    assert caught.value.at.file.endswith("test_declared.py")


def presence(user: str, rows: Sequence[Any], state: Any, timer: ms.Timer) -> None: ...


@pytest.mark.parametrize(
    ("missing", "given"),
    [("key", {}), ("state", {"key": "user"}), ("emits", {"key": "user", "state": "n BIGINT"})],
)
def test_an_option_that_is_missing_is_named_with_an_example(
    missing: str, given: dict[str, Any]
) -> None:
    with raises("OPERATOR_OPTION") as caught:
        ms.stateful(**given)(presence)

    assert caught.value.what == f"ms.stateful has no {missing}: it needs key, state, emits"
    assert caught.value.fix.startswith('write @ms.stateful(key="user", ')


def test_the_bare_decorator_is_refused_where_it_stands() -> None:
    with raises("OPERATOR_OPTION") as caught:
        ms.stateful(presence)  # type: ignore[arg-type, call-arg]

    assert caught.value.what.startswith("ms.stateful has no key")
    assert caught.value.at is not None
    assert caught.value.at.file.endswith("test_declared.py")


def test_an_option_that_is_misspelt_is_reported_by_the_nearest_name() -> None:
    with raises("OPERATOR_OPTION") as caught:
        made(timout="1 hour")

    assert str(caught.value).splitlines()[0] == (
        "[OPERATOR_OPTION] ms.stateful has timout='1 hour': it has no such option"
    )
    assert caught.value.fix == (
        "did you mean 'timeout'? "
        "its options are emits, event_time, initial, key, order, state, timeout, ttl"
    )


def test_state_that_nothing_ends_is_warned_of_by_name_and_line() -> None:
    app = ms.App("site")
    forever, ended = made(), made(ttl="1 day")

    def clears(user: str, rows: Any, state: Any, timer: ms.Timer) -> None:
        state.clear()

    cleared = made(clears)

    @app.source()
    def hits() -> ms.Memory:
        return ms.Memory("user STRING")

    @app.table()
    def a(hits: Any) -> Any:
        return next(forever(rows) for rows in (hits,))

    @app.view
    def b(hits: Any) -> Any:
        return ended(cleared(hits))

    [warning] = check.warnings(app.graph)

    assert app.faults == ()
    assert "'first', which 'a' calls" in warning.what
    assert warning.at == forever.declared.at


def test_timers_go_off_in_order_once_and_can_be_moved() -> None:
    def alarms(user: str, rows: Sequence[Any], state: Any, timer: ms.Timer) -> Iterator[Any]:
        if timer.fired == "again" and state.n < 3:
            timer.set("again", timer.now + timedelta(seconds=10))
        state.n = (state.n or 0) + 1
        yield f"{timer.fired} {(timer.now - NOON).seconds}", state.n
        for row in rows:
            timer.set("again", row.at + timedelta(seconds=10))
            timer.set("past", row.at - timedelta(days=1))
            timer.set("gone", row.at + timedelta(seconds=5))
            timer.cancel("gone")
            assert timer.at("gone") is None
            assert timer.at("past") == row.at

    calls = calls_of(made(alarms, state="n BIGINT", emits="what STRING, n BIGINT"))

    first = calls.turn(ANN, None, [at(0)], us_of(9))
    second = calls.turn(ANN, first.packed, [], us_of(30))

    assert reported(first.answers) == [("None 0", 1), ("past 0", 2)]
    assert first.due_us == us_of(10)
    assert reported(second.answers) == [("again 10", 3), ("again 20", 4)]
    assert second.due_us is None


def test_by_processing_time_rows_come_at_once_and_timers_by_the_clock() -> None:
    quiet = made(
        lambda user, rows, state, timer: (
            [(timer.fired, state.n)] if timer.fired else setattr(state, "n", len(rows))
        ),
        order="arrival",
        timeout="processing 1 minute",
    )
    calls = calls_of(quiet)

    first = calls.turn(ANN, None, [at(7000), at(1)], us_of(100))
    second = calls.turn(ANN, first.packed, [], us_of(159))
    third = calls.turn(ANN, second.packed, [], us_of(160))

    assert (first.due_us, second.answers) == (us_of(160), [])
    assert (reported(third.answers), third.packed) == ([("timeout", 2)], None)


def _raised(function: Any, **options: Any) -> TurnResult:
    return calls_of(made(function, **options)).turn(ANN, None, [at(0), at(1)], us_of(2))


def _wrong(bad: Any) -> Any:
    def wrong(user: str, rows: Sequence[Any], state: Any, timer: ms.Timer) -> Iterator[Any]:
        state.n = (state.n or 0) + 1
        timer.set("later", timer.now + timedelta(seconds=1))
        yield user, state.n
        if timer.now == NOON:
            yield from bad(state, timer)

    return wrong


def _set(state: Any, **values: Any) -> tuple[()]:
    for name, value in values.items():
        setattr(state, name, value)
    return ()


def test_what_does_not_fit_is_put_aside_and_leaves_the_state_as_it_was() -> None:
    reasons: dict[str, Any] = {
        "EMITTED_ROW": lambda state, timer: [("ann", "1")],
        "emits='user STRING, n BIGINT'": lambda state, timer: [{"nn": 1}],
        "surrogates": lambda state, timer: [("\ud800", 1)],
        "STATE_VALUE": lambda state, timer: _set(state, n="many"),
        "TIMER_REFUSED": lambda state, timer: timer.set("x", datetime(2026, 1, 1)),  # noqa: DTZ001
        "AttributeError": lambda state, timer: _set(state, m=1),
    }
    for reason, bad in reasons.items():
        turn = _raised(_wrong(bad))

        assert reported(turn.answers) == [("ann", 1), ("ann", 2)], reason
        [aside] = turn.raised
        assert reason in aside.traceback
        assert json.loads(aside.row)["at"].startswith("2026-01-01T12:00:00")
    turn = _raised(lambda a, b, c, d: [(Decimal("12.345"),)], emits="p DECIMAL(4,2)")
    assert ["more digits" in one.traceback for one in turn.raised] == [True, True]


def test_a_call_that_raises_sets_no_timer() -> None:
    def wrong(user: str, rows: Sequence[Any], state: Any, timer: ms.Timer) -> Any:
        timer.set("later", timer.now + timedelta(seconds=1))
        raise ValueError(user)

    turn = _raised(wrong)

    assert (turn.packed, turn.due_us, turn.answers, len(turn.raised)) == (None, None, [], 2)


def test_without_a_quarantine_what_it_raises_is_raised() -> None:
    calls = calls_of(visits, tolerates=False)

    with raises("STATEFUL_RAISED", match="'visits' raises ValueError: unlucky"):
        calls.turn(ANN, None, [at(0, 13)], us_of(1))


def test_a_checkpoint_is_read_key_by_key() -> None:
    turn = calls_of(visits).turn(ANN, None, [at(0, 5), at(9, 1)], us_of(5))
    part = msgspec.msgpack.encode(Keys({ANN: turn.packed}))

    kept = KeptState("visits", Schema.parse("user STRING"), visits.declared.state)
    forgotten = msgspec.msgpack.encode(Head(recent={0: Keys({ANN: None})}))

    [(key, is_recent, text)] = texts_of(0, part, kept)

    assert [*texts_of(HEAD_AT, forgotten, kept)] == [(ANN, True, None)]
    assert (key, is_recent) == (ANN, False)
    assert json.loads(text or "") == {
        "user": "ann",
        "since": "2026-01-01T12:00:00Z",
        "values": [5],
        "_timers": {"nudge": "2026-01-01T12:00:10Z", "timeout": "2026-01-01T12:00:30Z"},
        "_waiting": 1,
    }

"""How patterns are said, and what is refused before anything runs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import raises

import millstream as ms
from millstream.errors import Location
from millstream.operators.patterns.condition import parse
from millstream.operators.patterns.program import check_absence, check_order, skip_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.operators.patterns.pattern import Pattern

AT = Location("app.py", 1)


def begun() -> Pattern:
    return ms.pattern(key="card", within="10 minutes").step("small", "amount < 1")


def test_each_step_knows_its_line() -> None:
    said = (
        ms.pattern(key=["card", "shop"], within="10 minutes")
        .step("small", "amount < 1")
        .without("reset", "kind = 'pin_ok'")
        .either({"big": "amount > 500", "odd": "amount = 499"}, times=(1, None), greedy=False)
    )

    first, second = said.steps
    assert second.variables[0].at.line == first.variables[0].at.line + 2
    assert second.without[0].at.line == first.variables[0].at.line + 1
    assert (said.key, said.names) == (("card", "shop"), ("small", "big", "odd"))
    assert (second.least, second.most, second.is_greedy, second.is_optional) == (
        1,
        None,
        False,
        False,
    )
    check_order(said)


@pytest.mark.parametrize(
    "within",
    [None, "", "soon", 5, timedelta(minutes=5), "99999999999 days", "999999 days", "9" * 400 + "d"],
)
def test_a_pattern_without_a_time_bound_is_refused(within: Any) -> None:
    with raises("TIME_BOUND_MISSING"):
        ms.pattern(key="card", within=within)


@pytest.mark.parametrize("condition", [None, 5, ["a = 1"], b"a = 1"])
def test_a_condition_that_is_no_text_is_refused_where_it_is_said(condition: Any) -> None:
    said: list[Callable[[], object]] = [
        lambda: begun().step("b", condition),
        lambda: begun().either({"b": condition, "c": "a = 1"}),
        lambda: begun().without("b", condition),
    ]

    for say in said:
        with raises("CONDITION_REFUSED", match=r"it is a \w+, not text") as caught:
            say()
        assert caught.value.at is not None
        assert caught.value.at.file.endswith("test_pattern.py")


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("amount + 1", "it is add (amount + 1), not a condition"),
        ("'yes'", "it is literal ('yes'), not a condition"),
        ("", "it is empty"),
        ("amount >", "it cannot be read"),
        ("amount > 1; amount > 2", "it is not one condition"),
        ("amount > 1, amount > 2", "it is not one condition"),
        ("amount > 1 FROM cards", "it is not one condition"),
        ("sum(amount) > 3", "SUM(amount) is of no step"),
        ("amount > (SELECT max(x) FROM y)", "it holds a query or a window"),
        ("reset.kind = 'x'", "'reset' must not happen, so it has no row"),
    ],
)
def test_what_is_not_a_condition_is_refused_where_it_is_said(condition: str, why: str) -> None:
    said = begun().without("reset", "kind = 'pin_ok'")

    with raises("CONDITION_REFUSED") as caught:
        said.step("big", condition)

    assert why in caught.value.what
    assert caught.value.at is not None
    assert caught.value.at.file.endswith("test_pattern.py")


def test_a_condition_sees_earlier_steps_and_its_own_rows_and_structs_but_no_later_step() -> None:
    said = begun().step("more", "amount > small.amount AND more.amount IS NULL AND place.x = 1")

    with raises("LATER_STEP"):
        begun().step("next", "late.amount > 1").step("late", "amount > 2")
    with raises("LATER_STEP"):
        said.without("never", "end.amount = 1").step("end", "amount > 2")


@pytest.mark.parametrize("column", ["load", "comment", "desc", "set", "call", "show"])
def test_a_column_may_be_called_as_a_command_of_sql_is(column: str) -> None:
    condition = parse(f"{column} > 5 AND {column} > small.{column}", {"small"})

    assert condition.alone is not None
    assert condition.alone.sql(dialect="spark") == f"{column} > 5"
    assert condition.compared is not None
    assert condition.compared.sql(dialect="spark") == f"{column} > small.{column}"


def test_steps_that_do_not_fit_together_are_refused() -> None:
    blank = ms.pattern(key="card", within="10 minutes")
    faults: dict[str, Callable[[], object]] = {
        "without('x') comes before the first step": lambda: blank.without("x", "a = 1"),
        "two steps are called 'small'": lambda: begun().step("small", "a = 1"),
        "a step is called 'a b'": lambda: begun().step("a b", "a = 1"),
        "a step is called '_a'": lambda: begun().without("_a", "a = 1"),
        "a step is called 'then', a word of SQL": lambda: begun().step("then", "a = 1"),
        "times=(3, 2)": lambda: begun().step("b", "a = 1", times=(3, 2)),
        "times=-1": lambda: begun().step("b", "a = 1", times=-1),
        "times=0": lambda: begun().step("b", "a = 1", times=0),
        "times='2'": lambda: begun().step("b", "a = 1", times=wrong("2")),
        "times=(1, 2, 3)": lambda: begun().step("b", "a = 1", times=wrong((1, 2, 3))),
        "times=(1.5, 2)": lambda: begun().step("b", "a = 1", times=wrong((1.5, 2))),
        "times=True": lambda: begun().step("b", "a = 1", times=True),
        "times=None": lambda: begun().step("b", "a = 1", times=wrong(None)),
        "a step is called None": lambda: begun().step(wrong(None), "a = 1"),
        "a step is called 'x y'": lambda: begun().either({"x y": "a = 1", "z": "a = 2"}),
        "either() is given ['a = 1']": lambda: begun().either(wrong(["a = 1"])),
        "key=None names no columns": lambda: ms.pattern(key=wrong(None), within="1 hour"),
        "key=[] names no columns": lambda: ms.pattern(key=[], within="1 hour"),
        "tie_by=1 names no columns": lambda: ms.pattern(key="k", within="1 hour", tie_by=wrong(1)),
        "is never absent": lambda: check_absence(begun().step("b", "a = 1", optional=True)),
        "names no alternative": lambda: begun().either({}),
        "it has no step": lambda: check_order(blank),
        "every step is optional": lambda: check_order(blank.step("a", "b = 1", optional=True)),
        "nothing follows without('x')": lambda: check_order(begun().without("x", "a = 1")),
    }

    for what, do in faults.items():
        with raises("PATTERN_REFUSED") as caught:
            do()
        assert what in caught.value.what


def wrong(value: Any) -> Any:
    """What a type checker would not let pass."""
    return value


def test_a_pattern_that_can_begin_and_not_go_on_can_be_absent() -> None:
    blank = ms.pattern(key="card", within="10 minutes")

    check_absence(begun().step("b", "a = 1"))
    check_absence(blank.step("b", "a = 1", times=2))
    check_absence(blank.step("a", "a = 1", optional=True).step("b", "a = 2"))


def test_matching_cannot_go_on_where_it_began_or_nowhere() -> None:
    said = (
        begun()
        .step("maybe", "a = 1", optional=True)
        .either({"one": "a = 2", "two": "a = 3"})
        .step("end", "a = 4", times=(1, 3))
    )

    assert skip_of(said, "skip_to_last(end)", AT).policy == "skip_to_last"
    for refused in (
        "skip_to_first(small)",
        "skip_to_last(small)",
        "skip_to_last(maybe)",
        "skip_to_first(one)",
        "skip_to_last",
        "skip_to_last(nobody)",
        "skip",
        "skip_to_last(end",
        "skip_past_last()",
        wrong(None),
    ):
        with raises("PATTERN_REFUSED"):
            skip_of(said, refused, AT)

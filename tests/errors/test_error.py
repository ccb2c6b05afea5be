from __future__ import annotations

import pickle
from string import Formatter

import pytest

from millstream.errors import (
    Location,
    MillstreamError,
    StoreUnreachableError,
    UserCodeError,
    conceal,
    fault,
    raise_faults,
)
from millstream.errors.error import CAUGHT, KINDS
from millstream.errors.page import Page, codes, read_page

AT = Location("app.py", 7)


def sample(code: str) -> MillstreamError:
    """Make an error of some facts, whatever its page has places for."""
    page = read_page(code)
    parsed = [*Formatter().parse(page.what), *Formatter().parse(page.fix)]
    numbers = {name: 0.5 for _, name, spec, _ in parsed if name and spec}
    return fault(code, at=AT, **{**dict.fromkeys(page.places, "orders"), **numbers})


def test_an_error_says_what_where_and_how_to_fix_it() -> None:
    error = fault("KEY_MISSING", at=AT, table="paid")

    assert (error.code, error.at, error.facts) == ("KEY_MISSING", AT, {"table": "paid"})
    assert str(error).splitlines() == [
        "[KEY_MISSING] table 'paid' has mode='update' and no key",
        "  at:  app.py:7",
        '  fix: say which columns identify a row: key=["…"]',
    ]


def test_the_class_of_an_error_is_who_must_act_or_what_code_catches() -> None:
    late = fault("LATE_ROWS", at=AT, batch=1, source="orders", rows=2)
    gone = fault("STORE_UNREACHABLE", store="Redis", why="refused")

    assert (type(late), late.exit_code, late.transient) == (UserCodeError, 1, False)
    assert (type(gone), gone.exit_code, gone.transient) == (StoreUnreachableError, 3, True)


def test_the_exit_code_of_an_error_is_that_of_its_kind() -> None:
    kinds = {kind: branch.exit_code for kind, branch in KINDS.items()}

    assert kinds == {"declaration": 1, "user code": 1, "command": 2, "cluster": 3, "finding": 1}


@pytest.mark.parametrize("code", CAUGHT)
def test_a_class_that_code_catches_is_of_the_kind_that_its_page_says(code: str) -> None:
    assert CAUGHT[code].__base__ is KINDS[read_page(code).kind]


@pytest.mark.parametrize("facts", [{}, {"table": "paid", "mode": "update"}, {"tabel": "paid"}])
def test_facts_that_are_missing_or_have_no_place_are_refused_at_once(
    facts: dict[str, object],
) -> None:
    with pytest.raises(TypeError, match="KEY_MISSING has other facts than its page: "):
        fault("KEY_MISSING", at=AT, **facts)


def test_an_error_points_to_the_part_of_a_declaration_that_its_page_names() -> None:
    lines = {("mode",): 3, ("from", "big orders"): 5}
    at = Location("paid.sql", 1, lines=lines)

    mode = fault("KEY_MISSING", at=at, table="paid")
    served = fault("SERVED_INPUT", at=at, dataset="paid", reads="big orders")
    other = fault("SERVED_INPUT", at=at, dataset="paid", reads="orders")

    assert [str(error.at) for error in (mode, served, other)] == [
        "paid.sql:3",
        "paid.sql:5",
        "paid.sql:1",
    ]


def test_no_error_shows_a_value_that_is_concealed() -> None:
    conceal("sesame", "${PASSWORD}")

    error = fault("STORE_LOGIN", store="Redis", why="sesame is wrong")

    assert error.what == "Redis refuses the login: ${PASSWORD} is wrong"


@pytest.mark.parametrize("code", codes())
def test_an_error_survives_the_way_to_a_worker_and_back(code: str) -> None:
    error = sample(code)

    back = pickle.loads(pickle.dumps(error))

    assert type(back) is type(error)
    assert (str(back), back.at, back.facts) == (str(error), error.at, error.facts)


def test_an_error_that_was_located_later_keeps_its_place_on_the_way() -> None:
    at = Location("paid.sql", 1, lines={("mode",): 3})
    error = fault("KEY_MISSING", table="paid").located(at)

    back = pickle.loads(pickle.dumps(error))

    assert back.at == at


def test_one_fault_is_raised_as_it_is_and_several_together() -> None:
    one, other = (fault("KEY_MISSING", at=AT, table=name) for name in ("paid", "sold"))

    raise_faults([])
    with pytest.raises(MillstreamError) as single:
        raise_faults([one])
    with pytest.raises(MillstreamError) as several:
        raise_faults([one, other])

    assert single.value is one
    assert several.value.code == "FAULTS"
    assert several.value.what.splitlines()[:2] == [
        "2 faults:",
        "  [KEY_MISSING] table 'paid' has mode='update' and no key",
    ]


def test_a_page_is_read_as_yaml_reads_it() -> None:
    page = Page.parse(
        "---\n"
        "code: LATE\n"
        "kind: cluster\n"
        "means: A train is late: by far.\n"
        'what: "train {name!r} is\\n{by} late"\n'
        "fix: 'don''t \"wait\"'\n"
        "transient: true\n"
        "---\n"
        "Why.\n---\nMore.\n"
    )

    assert page == Page(
        code="LATE",
        kind="cluster",
        means="A train is late: by far.",
        what="train {name!r} is\n{by} late",
        fix='don\'t "wait"',
        at="",
        transient=True,
        warning=False,
        text="Why.\n---\nMore.\n",
    )
    assert page.places == {"name", "by"}

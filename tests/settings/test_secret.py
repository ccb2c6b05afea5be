from __future__ import annotations

import pickle

import pytest
from tests.faults import raises

from millstream.errors import Location, fault
from millstream.settings.secret import Secret, expand, revealed

AT = Location("millstream.toml", 3)


def expanded(text: str) -> str:
    return expand(text, key="sources.orders.topic", at=AT)


def test_a_secret_is_used_as_it_is_and_shown_as_it_was_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CANARY", "yellow bird")

    secret = expanded("a-${CANARY}-b")

    assert secret == "a-yellow bird-b"
    assert [repr(secret), str(secret), f"{secret:>15}", "%s" % secret] == [  # noqa: UP031
        "'a-${CANARY}-b'",
        "a-${CANARY}-b",
        "  a-${CANARY}-b",
        "a-${CANARY}-b",
    ]
    assert type(revealed(secret)) is str
    assert revealed(secret) == "a-yellow bird-b"


def test_a_secret_stays_one_on_the_way_to_a_worker() -> None:
    back = pickle.loads(pickle.dumps(Secret("value", "${NAME}")))

    assert (revealed(back), str(back)) == ("value", "${NAME}")


def test_a_default_stands_in_for_a_variable_that_is_missing_or_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MISSING", raising=False)
    monkeypatch.setenv("EMPTY", "")

    assert revealed(expanded("${MISSING:-a}${EMPTY:-b}${EMPTY:-}")) == "ab"


def test_a_text_without_variables_is_a_plain_text() -> None:
    assert [type(expanded(text)) for text in ("plain", "$5", "$${x}")] == [str, str, str]
    assert expanded("$${spark.x}") == "${spark.x}"


def test_all_missing_variables_of_a_value_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONE", raising=False)
    monkeypatch.delenv("TWO", raising=False)

    with raises("VARIABLE_MISSING") as caught:
        expanded("${ONE}:${TWO}")

    assert str(caught.value) == (
        "[VARIABLE_MISSING] 'sources.orders.topic' needs ONE, TWO, "
        "which the environment does not have\n"
        "  at:  millstream.toml:3\n"
        "  fix: export it, or give a default: ${NAME:-default}"
    )


@pytest.mark.parametrize("text", ["${}", "${a-b}", "x${", "${HOME"])
def test_what_only_looks_like_a_variable_is_refused(text: str) -> None:
    with raises("VALUE_REFUSED", match="is written"):
        expanded(text)


def test_no_error_tells_a_secret_even_if_someone_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "canary-4711:9092")
    servers = expanded("${CANARY}")

    error = fault(
        "BROKER_UNREACHABLE",
        at=AT,
        servers=servers,
        dataset="source 'orders'",
        why=": cannot resolve canary-4711:9092",
    )
    joined = fault("STORE_LOGIN", store=", ".join([servers]), why="none")

    for reported in (error, joined, pickle.loads(pickle.dumps(error))):
        assert "4711" not in str(reported) + repr(reported)
    assert "${CANARY}: cannot resolve ${CANARY}" in str(error)

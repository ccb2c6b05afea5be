from __future__ import annotations

import inspect
import pickle
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from millstream import errors
from millstream.errors import (
    ClusterError,
    CommandError,
    DeclarationError,
    Location,
    MillstreamError,
    NotEqualError,
)
from millstream.errors.catalogue import BRANCHES, kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

AT = Location("app.py", 7)
SAMPLES: dict[str, Any] = {
    "str": "orders",
    "str | None": "orders",
    "int": 3,
    "int | None": 3,
    "float": 0.5,
    "bool": True,
    "object": "orders",
    "PatternFault": "times",
    "StatefulFault": "order",
    "Location": AT,
    "Location | None": AT,
    "Sequence[str]": ("orders", "clicks"),
    "Sequence[int]": (17, 21),
    "Sequence[tuple[str, str]]": (("item", "pen"),),
    "Mapping[str, object]": {"page": "/"},
    "Sequence[MillstreamError]": (MillstreamError("one", fix="two"),),
}


def all_kinds(kind: type[MillstreamError] = MillstreamError) -> Iterator[type[MillstreamError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__.startswith(f"{errors.__name__}."):
            yield from all_kinds(below)


KINDS = tuple(dict.fromkeys(all_kinds()))


def sample(kind: type[MillstreamError]) -> MillstreamError:
    """Make an error of whatever its arguments are declared to be."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    given = {p.name: SAMPLES[p.annotation] for p in parameters if p.name != "self"}
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name in given]
    by_place = [given.pop(name) for name in names]
    return kind(*by_place, **given)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_says_what_where_and_how_to_fix_it(kind: type[MillstreamError]) -> None:
    error = sample(kind)

    first, *others = str(error).splitlines()
    assert first.startswith(f"[{kind.code}] ")
    assert first.endswith(error.what.splitlines()[0])
    assert others[-1] == f"  fix: {error.fix}"
    assert error.fix
    assert (f"  at:  {error.at}" in others) == (error.at is not None)
    assert "please" not in str(error).lower()
    assert not error.what.endswith(".")


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_the_way_to_a_worker_and_back(kind: type[MillstreamError]) -> None:
    error = sample(kind)

    back = pickle.loads(pickle.dumps(error))

    assert type(back) is kind
    assert (str(back), back.what, back.fix, back.at) == (
        str(error),
        error.what,
        error.fix,
        error.at,
    )


def test_an_error_that_was_located_later_keeps_its_place_on_the_way() -> None:
    error = MillstreamError("one", fix="two").located(AT)

    back = pickle.loads(pickle.dumps(error))

    assert back.at == AT


def test_every_error_has_a_code_of_its_own() -> None:
    codes = Counter(kind.code for kind in KINDS)

    assert [code for code, count in codes.items() if count > 1] == []
    assert all(code == code.upper() and " " not in code for code in codes)


def test_every_error_ends_in_error_and_has_a_docstring_of_its_own() -> None:
    assert [k.__name__ for k in KINDS if not k.__name__.endswith("Error")] == []
    assert [k.__name__ for k in KINDS if "__doc__" not in vars(k) or not k.__doc__] == []


def test_every_error_belongs_to_the_person_who_must_act() -> None:
    branches = (DeclarationError, CommandError, ClusterError)

    loose = {kind for kind in KINDS if not issubclass(kind, branches)}

    found = {NotEqualError} | {kind for kind in KINDS if issubclass(kind, AssertionError)}
    assert loose == {MillstreamError, *found}
    assert {kind.exit_code for kind in KINDS if issubclass(kind, DeclarationError)} == {1}
    assert {kind.exit_code for kind in KINDS if issubclass(kind, CommandError)} == {2}
    assert {kind.exit_code for kind in KINDS if issubclass(kind, ClusterError)} == {3}


def test_every_error_is_in_the_catalogue() -> None:
    absent = {kind.__name__ for kind in {*KINDS} - {*BRANCHES} - {*kinds()}}

    assert not absent, f"add to src/millstream/errors/__init__.py: {sorted(absent)}"

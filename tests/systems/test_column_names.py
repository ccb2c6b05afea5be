"""Columns with any name in every store, by its own client and by look-up."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.systems.conftest import EVERY
from tests.systems.stores import opened, put, rows_in

from millstream.serve.shape import Column

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Any]

NUMBERS = itertools.count()
MARKS = "\"'`\\.,;:(){}[]<>=%$#@!?*+-/|&^~ \t\n\r\x01\x1f\x7f\x85\u2028éß語😀_aB0"
NAMES = st.lists(
    st.text(
        st.sampled_from(MARKS) | st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
        min_size=1,
        max_size=9,
    ),
    min_size=8,
    max_size=16,
    unique_by=str.lower,
)


@pytest.mark.parametrize("make", EVERY, indirect=True)
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(names=NAMES)
def test_every_store_holds_columns_of_any_name(make: Make, names: list[str]) -> None:
    key, *others = names
    columns = [Column(name, "string") for name in names]
    fields: list[Any] = [(name, pa.string()) for name in names]
    sink = make(name=f"items{next(NUMBERS)}", key=[key])
    store = opened(sink, columns=columns, mode="update" if sink.key else "append")
    first = {name: f"{number}" for number, name in enumerate(names)}
    second = {key: "second"} | dict.fromkeys(others)

    put(store, 0, pa.Table.from_pylist([first], pa.schema(fields)))
    put(store, 1, pa.Table.from_pylist([second], pa.schema(fields)))
    if sink.key:
        first |= dict.fromkeys(others, "changed")
        put(store, 2, pa.Table.from_pylist([first], pa.schema(fields)))

    found = [{n: row.get(n) for n in names} for row in rows_in(sink)]
    assert sorted(found, key=str) == sorted([first, second], key=str)
    if hasattr(sink, "reader"):
        reader = sink.reader("items")
        assert dict(reader.get({key: first[key]})) == first
        reader.close()

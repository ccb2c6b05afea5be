"""Every public method of pyspark.streaming's classes, found by introspection, is in ours."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark import streaming
from pyspark.streaming.dstream import TransformedDStream

from millstream import dstream

THEIRS: dict[str, type[Any]] = {
    "StreamingContext": streaming.StreamingContext,
    "DStream": streaming.DStream,
    "TransformedDStream": TransformedDStream,
    "StreamingListener": streaming.StreamingListener,
}
METHODS = [
    (kind, name)
    for kind, theirs in THEIRS.items()
    for name in dir(theirs)
    if not name.startswith("_") and not inspect.isclass(getattr(theirs, name))
]
PAGE = Path(__file__).parents[2] / "docs/how-to/dstreams.md"
UNNAMED = ("sparkContext", "context")
STATE = ("exists", "get", "update", "remove", "isTimingOut")


def parameters(kind: type[Any], name: str) -> list[tuple[str, Any, Any]] | str:
    """What a method is called with: names, kinds and defaults."""
    found = inspect.getattr_static(kind, name)
    if isinstance(found, property):
        return "property"
    how = [("class", None, None)] if isinstance(found, classmethod) else []
    called = inspect.signature(getattr(kind, name)).parameters.values()
    return how + [(each.name, each.kind, each.default) for each in called]


def test_there_are_methods_to_compare() -> None:
    assert len(METHODS) > 100


@pytest.mark.parametrize(("kind", "name"), METHODS, ids=lambda value: value)
def test_a_method_is_present_with_its_signature(kind: str, name: str) -> None:
    ours = getattr(dstream, kind)

    assert hasattr(ours, name), f"{kind}.{name} is missing"
    assert parameters(ours, name) == parameters(THEIRS[kind], name)


def test_a_context_is_made_as_theirs_is() -> None:
    theirs = [*inspect.signature(streaming.StreamingContext).parameters.values()][:2]
    ours = [*inspect.signature(dstream.StreamingContext).parameters.values()][:2]

    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs]


def test_a_transformed_stream_is_a_stream() -> None:
    assert issubclass(dstream.TransformedDStream, dstream.DStream)


def test_every_name_that_pyspark_exports_is_exported() -> None:
    assert {*streaming.__all__} <= {*dstream.__all__}


def test_states_can_be_kept_for_each_key_as_in_scala() -> None:
    assert callable(dstream.DStream.mapWithState)
    assert [name for name in STATE if not hasattr(dstream.State, name)] == []
    assert hasattr(dstream, "StateSpec")


def test_the_page_for_users_of_dstreams_names_every_operation() -> None:
    page = PAGE.read_text()

    assert [
        name
        for kind, name in METHODS
        if kind in ("StreamingContext", "DStream") and name not in UNNAMED
        if not re.search(rf"\b{name}\b", page)
    ] == []

"""What is no fault and may become one: state that nothing ends."""

from __future__ import annotations

import inspect
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from millstream.errors import MillstreamError, fault
from millstream.model.dataset import Source
from millstream.model.state import KeyedState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.model.graph import Graph


def states_kept_forever(graph: Graph) -> Iterator[MillstreamError]:
    """Functions with state that never forget a key."""
    for dataset in graph.declared:
        if isinstance(dataset, Source):
            continue
        for state in functions_with_state(dataset.build):
            if not state.is_bounded:
                yield fault(
                    "STATE_KEPT_FOREVER", at=state.at, function=state.name, dataset=dataset.name
                )


def functions_with_state(function: Callable[..., Any]) -> tuple[KeyedState, ...]:
    """Return the functions with state that a function refers to by name."""
    plain = inspect.unwrap(function)
    if not inspect.isfunction(plain):
        return ()
    names = set(_names(plain.__code__))
    values = {**plain.__globals__, **inspect.getclosurevars(plain).nonlocals}
    found = [values[name] for name in names if name in values]
    found += [
        getattr(module, name, None)
        for module in found
        if isinstance(module, ModuleType)
        for name in names
    ]
    states = (getattr(value, "declared", None) for value in found)
    return tuple(sorted({s for s in states if isinstance(s, KeyedState)}, key=lambda s: s.name))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)

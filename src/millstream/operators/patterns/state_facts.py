"""What the state of a pattern depends on, as text that is stored with the checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.model.duration import to_text
from millstream.model.state import KeptOperator
from millstream.operators.columns import typed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.errors import Location
    from millstream.operators.patterns.pattern import PatternStep, Variable
    from millstream.operators.patterns.program import AfterMatch
    from millstream.operators.patterns.rows import SearchedRows


def state_facts(
    searched: SearchedRows, skip: AfterMatch | None, carried: Sequence[str], at: Location
) -> KeptOperator:
    """Describe what rows, masks, steps and branches in the state of a pattern mean.

    Conditions are stored as the user wrote them: the same text has the same meaning with every
    version of the parser.
    """
    pattern, rows = searched.pattern, searched.rows
    compared = (f"{'.'.join(path)} {kind}" for path, kind in searched.kinds().items())
    facts = {
        "the key": typed(rows, pattern.key),
        "within": to_text(pattern.within),
        "the event time": searched.time,
        **{f"step {n}": _step_text(step) for n, step in enumerate(pattern.steps, 1)},
        "columns it keeps": typed(rows, carried) or "none",
        "columns it compares": ", ".join(compared) or "none",
    }
    if pattern.tie_by:
        facts["tie_by"] = typed(rows, pattern.tie_by)
    if skip is None:
        return KeptOperator("ms.absent", facts, at=at)
    steps = {number: v.name for number, (v, _) in enumerate(pattern.conditions())}
    of = f"({steps[min(skip.variables)]})" if skip.variables else ""
    return KeptOperator("ms.match", {**facts, "after_match": skip.policy + of}, at=at)


def _step_text(step: PatternStep) -> str:
    return "; ".join(_parts(step))


def _parts(step: PatternStep) -> Iterator[str]:
    yield " or ".join(map(_condition, step.variables))
    if (step.least, step.most) != (1, 1):
        yield f"times {step.least} to {'any' if step.most is None else step.most}"
    yield from ["optional"] * step.is_optional
    yield from ["not greedy"] * (not step.is_greedy)
    yield from ["strict"] * step.is_strict
    yield from (f"without {_condition(guard)}" for guard in step.without)


def _condition(variable: Variable) -> str:
    return f"{variable.name} ({variable.condition.strip()})"

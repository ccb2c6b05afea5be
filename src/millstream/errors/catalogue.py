"""Every code a person can meet: its class, its page, and the reference made of them.

`python -m millstream.errors.catalogue docs/errors.md` writes the reference.
"""

from __future__ import annotations

import sys
from pathlib import Path

from millstream import errors
from millstream.errors.base import (
    ClusterError,
    CommandError,
    DeclarationError,
    MillstreamError,
    UserCodeError,
)

PAGES = Path(__file__).with_name("pages")

BRANCHES: dict[type[MillstreamError], str] = {
    DeclarationError: "The app is wrong",
    UserCodeError: "A function of the app raised, or gave the wrong thing",
    CommandError: "The command is wrong",
    ClusterError: "Spark, a broker, storage or the machine is wrong",
    MillstreamError: "A comparison or a proof found a difference",
}
"""The classes that only sort the others, and what is true of those below them."""

_HEAD = """\
# Errors

Every error says what is wrong, where, and how to fix it. Its code is stable, its wording is not.
`millstream explain CODE` prints the page of a code, which has an example; `millstream explain`
lists them all.

<!-- Made from the classes by `python -m millstream.errors.catalogue docs/errors.md`. -->
"""


def kinds() -> tuple[type[MillstreamError], ...]:
    """Every error that can be met, by its code."""
    named = [getattr(errors, name) for name in errors.__all__]
    found = [k for k in named if isinstance(k, type) and issubclass(k, MillstreamError)]
    return tuple(sorted(set(found) - set(BRANCHES), key=lambda kind: kind.code))


def branch_of(kind: type[MillstreamError]) -> type[MillstreamError]:
    """The branch an error is on: who must act."""
    return next(above for above in kind.__mro__ if above in BRANCHES)


def summary_of(kind: type[MillstreamError]) -> str:
    """What an error means, in a line."""
    return (kind.__doc__ or "").partition("\n")[0]


def page_of(kind: type[MillstreamError]) -> str:
    """The page about an error, in Markdown."""
    return (PAGES / f"{kind.code}.md").read_text(encoding="utf-8")


def find(code: str) -> type[MillstreamError]:
    """Find an error by its code, in any case, with or without its brackets.

    Raises:
        UnknownCodeError: There is no such code.

    >>> find("[unknown_input]").__name__
    'UnknownInputError'
    """
    known = {kind.code: kind for kind in kinds()}
    wanted = code.strip("[] ").upper()
    if wanted not in known:
        raise errors.UnknownCodeError(wanted, known=tuple(known))
    return known[wanted]


def reference(pages: str) -> str:
    """Write the list of every code, linked to its page in a folder."""
    told = [_HEAD]
    for branch, heading in BRANCHES.items():
        told.append(
            f"\n## {heading}: exit code {branch.exit_code}\n\n| code | means |\n|---|---|\n"
        )
        told += [
            f"| [`{kind.code}`]({pages}/{kind.code}.md) | {summary_of(kind)} |\n"
            for kind in kinds()
            if branch_of(kind) is branch
        ]
    return "".join(told)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference("../src/millstream/errors/pages"), encoding="utf-8")

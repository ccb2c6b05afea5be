"""Every code a person can meet, by who must act, and the reference made of them.

`python -m millstream.errors.catalogue docs/errors.md` writes the reference.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors.error import KINDS, fault
from millstream.errors.page import codes, read_page
from millstream.errors.words import closest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.errors.page import Page

HEADINGS: Mapping[str, str] = {
    "declaration": "The app is wrong",
    "user code": "A function of the app raised, or gave the wrong thing",
    "command": "The command is wrong",
    "cluster": "Spark, a broker, storage or the machine is wrong",
    "finding": "A comparison or a proof found a difference",
}
"""What is true of all errors of a kind."""

_HEAD = """\
# Errors

Every error says what is wrong, where, and how to fix it. Its code is stable, its wording is not.
`millstream explain CODE` prints the page of a code, which has an example; `millstream explain`
lists them all.

<!-- Made from the pages by `python -m millstream.errors.catalogue docs/errors.md`. -->
"""


def pages() -> tuple[Page, ...]:
    """Every page, by its code."""
    return tuple(read_page(code) for code in codes())


def exit_code(kind: str) -> int:
    """The exit code of a command that ends with an error of a kind."""
    return KINDS[kind].exit_code


def find(code: str) -> Page:
    """Find a page by its code, in any case, with or without its brackets.

    Raises:
        UNKNOWN_CODE: There is no such code.

    >>> find("[unknown_input]").means
    'A dataset reads a name that nothing declares.'
    """
    known, wanted = codes(), code.strip("[] ").upper()
    if wanted not in known:
        raise fault("UNKNOWN_CODE", given=wanted, nearest=closest(wanted, known))
    return read_page(wanted)


def reference(folder: str) -> str:
    """Write the list of every code, linked to its page in a folder."""
    parts = [_HEAD]
    for kind, heading in HEADINGS.items():
        parts.append(f"\n## {heading}: exit code {exit_code(kind)}\n\n")
        parts.append("| code | means |\n|---|---|\n")
        parts += [
            f"| [`{page.code}`]({folder}/{page.code}.md) | {page.means} |\n"
            for page in pages()
            if page.kind == kind
        ]
    return "".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference("../src/millstream/errors/pages"), encoding="utf-8")

"""`millstream sample`: source code for records that nobody has described yet."""

from __future__ import annotations

from typing import Annotated

import typer

from millstream.cli.option import Json  # noqa: TC001 - typer reads annotations
from millstream.views.json_text import to_json


def sample(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="A file, a folder, a pattern, or kafka:HOST:PORT/TOPIC."
        ),
    ],
    *,
    records: Annotated[int, typer.Option("--records", min=1, help="How many to look at.")] = 1000,
    json: Json = False,
) -> None:
    """Propose the code of a source, from a sample of its records."""
    from millstream.cli.sample_code import to_code
    from millstream.views.sample_input import propose

    sampled = propose(path, records)
    print(to_json(sampled.proposal)) if json else print(to_code(sampled))

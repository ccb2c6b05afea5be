"""`millstream forget`: rows of somebody erased from a home, with a receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli import text
from millstream.cli.option import HomeDir, Json, ProfileName, app_and_name
from millstream.errors import closest, fault, listed
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from millstream.upkeep.forget import Receipt


def forget(  # noqa: PLR0913 - a command has the options it has
    app: Annotated[str, typer.Argument(metavar="APP", help="The app.")],
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A dataset that has the rows.")
    ] = None,
    *,
    where: Annotated[
        str, typer.Option(metavar="CONDITION", help="Such as \"user = 'ann' AND shop = 3\".")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Erase them; without it, only count.")] = False,
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Erase rows from a dataset, all it is made from and all made from it, old versions too."""
    from millstream.lake.condition import OwnRows
    from millstream.lake.lease import Lease
    from millstream.loading import load
    from millstream.upkeep.forget import Forgetting

    file, dataset = app_and_name(app, name)
    loaded = load(file, profile)
    loaded.raise_faults(places=False)
    if dataset not in (known := loaded.graph.datasets):
        nearest = closest(dataset, known)
        raise fault("UNKNOWN_DATASET", name=dataset, nearest=nearest, known=listed(known))
    rows, place = OwnRows.parse(where), loaded.home(home)
    place.verify_in_use(loaded.name)
    with Lease.acquire(place) as lease:
        work = Forgetting(loaded.graph, lease, dataset, rows)
        receipt = work.erase() if yes else work.count()
    print(to_json(receipt)) if json else _show(receipt)
    if not yes:
        number = text.counted(sum(receipt.rows.values()), "row")
        raise fault("FORGET_NOT_AGREED", rows=number)


def _show(receipt: Receipt) -> None:
    """Print a receipt."""
    text.print_table(("table", "rows"), [[name, str(n)] for name, n in receipt.rows.items()])
    columns = ", ".join(receipt.columns)
    for said, names in (
        ("values are too short to be searched for in every file", receipt.not_searched),
        (f"have no column {columns}, left as they are", receipt.without_columns),
        ("keep state that may still have the values: checkpoint rebuild", receipt.states),
        ("are in stores outside the home: erase them there", receipt.served),
    ):
        if names:
            print(f"\n  {', '.join(names)}: {said}")
    for file in receipt.found:
        print(f"  ✗ still found in {file}")
    if receipt.is_done and not receipt.not_searched:
        print("\n  ✓ no byte of the values is left in the home")

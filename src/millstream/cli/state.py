"""`millstream state`: what functions with state keep of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.answer import show
from millstream.cli.option import AppFile, HomeDir, Json, Master, ProfileName  # noqa: TC001 - typer reads annotations
from millstream.errors import fault
from millstream.loading import load
from millstream.views.json_text import AnswerView, to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def state(  # noqa: PLR0913 - a command has the options it has
    app: AppFile,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The function, or the dataset that calls it.")
    ],
    *,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Which keys, such as \"user = 'ann'\".")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, metavar="N", help="How many keys to show.")] = 20,
    home: HomeDir = None,
    profile: ProfileName = None,
    master: Master = None,
    json: Json = False,
) -> None:
    """Show the state of each key of a function. As of its last batch; also while it runs."""
    from millstream.build.states import read_state
    from millstream.cli.quiet import open_quiet_session

    loaded = load(app, profile)
    place = loaded.home(home)
    place.verify_in_use(loaded.name)
    conf = loaded.bound.spark
    spark = open_quiet_session(loaded.name, loaded.master(master), conf=conf, log_dir=place.logs)
    view = _answer(read_state(spark, place, name), where, rows)
    print(to_json(view)) if json else show(view)


def _answer(found: DataFrame, where: str | None, rows: int) -> AnswerView:
    from pyspark.errors import PySparkException

    from millstream.spark.message import message_of

    try:
        chosen = found.where(where) if where else found
        taken = [tuple(row) for row in chosen.limit(rows).collect()]
    except PySparkException as error:
        expected = f"a condition on {', '.join(found.columns)}: {message_of(error)}"
        raise fault(
            "ARGUMENT_REFUSED", option="--where", value=where or "", expected=expected
        ) from error
    return AnswerView(tuple(found.columns), taken)

"""`millstream alerts`: list alerts and their deliveries, retry them, silence them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.alert.deliveries import STATES
from millstream.cli import text
from millstream.cli.option import AppIfAny, HomeDir, Json, ProfileName, length_of_time
from millstream.cli.usage import Commands
from millstream.errors import fault
from millstream.loading import find_deployed
from millstream.model.notice import worded
from millstream.views import alerts as view
from millstream.views.json_text import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.lake.home import Home

_LIST = "list"
_LISTED = 20
_SHOWN = 12
"""How much of an id is printed; as much is enough to name one."""


class _AlertCommands(Commands):
    """Commands of which `list` may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a first word that is no command as the app whose alerts are listed."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args.insert(0, _LIST)
        return super().parse_args(ctx, args)


alerts = typer.Typer(
    name="alerts",
    cls=_AlertCommands,
    help="List the alerts of an app, retry them, or silence them.",
    rich_markup_mode=None,
)

OneAlert = Annotated[
    str | None, typer.Option("--alert", metavar="NAME", help="Only this alert [all].")
]


@alerts.command(_LIST)
def list_(  # noqa: PLR0913 - a command has the options it has
    app: AppIfAny = None,
    *,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help=f"Only {', '.join(STATES)}.")
    ] = None,
    alert: OneAlert = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="How many to show [20; with --json all]."),
    ] = None,
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """List alerts and their deliveries, the newest first."""
    if state is not None and state not in STATES:
        raise fault(
            "ARGUMENT_REFUSED",
            option="--state",
            value=state,
            expected=f"one of {', '.join(STATES)}",
        )
    place = _place(app, home, profile, alert)
    limit = limit or (None if json else _LISTED)
    shown = view.AlertsView.of(place, alert=alert, state=state, limit=limit)
    print(to_json(shown)) if json else _print(shown)


@alerts.command()
def retry(
    app: AppIfAny = None,
    *,
    alert: OneAlert = None,
    id_: Annotated[
        str, typer.Option("--id", metavar="ID", help="Only the notice whose id begins so.")
    ] = "",
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Send dead and silenced alerts again. The running driver does it, or the next one."""
    done = view.retry(_place(app, home, profile, alert), alert=alert, id_=id_)
    if json:
        print(to_json(done))
    else:
        print(f"  ✓ {text.counted(done.notices, 'notice')} will be sent again")


@alerts.command()
def silence(  # noqa: PLR0913 - a command has the options it has
    app: AppIfAny = None,
    *,
    for_: Annotated[
        str, typer.Option("--for", metavar="TIME", help='Such as "2 hours"; 0s ends it.')
    ],
    alert: OneAlert = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="COLUMN=VALUE", help="Only rows with this key; repeatable."),
    ] = None,
    home: HomeDir = None,
    profile: ProfileName = None,
    json: Json = False,
) -> None:
    """Send no alerts for a while; the outbox still gets every row."""
    length = length_of_time("--for", for_)
    about = dict(_pair(each) for each in key or ())
    place, graph = find_deployed(app, home, profile)
    view.check_alert(graph, alert)
    if length:
        view.check_key_columns(graph, alert, about)
    created = view.silence(place, alert=alert, key=about, for_s=length.total_seconds())
    if json:
        print(to_json(created))
    else:
        print(f"  ✓ {_silenced(created)}" if length else "  ✓ alerts are sent again")


def _place(app: str | None, home: str | None, profile: str | None, alert: str | None) -> Home:
    place, graph = find_deployed(app, home, profile)
    view.check_alert(graph, alert)
    return place


def _pair(option: str) -> tuple[str, str]:
    name, equals, value = option.partition("=")
    if not equals or not name:
        raise fault("ARGUMENT_REFUSED", option="--key", value=option, expected="COLUMN=VALUE")
    return name, value


def _print(shown: view.AlertsView) -> None:
    rows = [
        [d.id[:_SHOWN], d.alert, _about(d.key), d.destination, d.state, str(d.attempts), _why(d)]
        for d in shown.deliveries
    ]
    if rows:
        text.print_table(("id", "alert", "about", "destination", "state", "tries", ""), rows)
        print()
    if shown.left_out:
        print(f"  … and {shown.left_out} more; --limit shows them")
    for silenced in shown.silences:
        print(f"  {_silenced(silenced)}")
    print("  " + " · ".join(f"{count} {state}" for state, count in shown.counts.items()))


def _about(key: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={worded(value)}" for name, value in key.items()) or text.NOTHING


def _why(shown: view.DeliveryView) -> str:
    more = f"and {shown.repeats} more in the cooldown" if shown.repeats else ""
    again = f"again at {text.moment(shown.next_at)}" if shown.next_at else ""
    return "; ".join(word for word in (shown.reason, again, more) if word)


def _silenced(shown: view.SilenceView) -> str:
    about = f" about {_about(shown.key)}" if shown.key else ""
    return f"{shown.alert or 'every alert'}{about} is silenced until {text.moment(shown.until)}"

"""`millstream ledger`: what became of every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.cli.option import AppIfAny, HomeDir, Json, ProfileName  # noqa: TC001 - typer reads annotations
from millstream.cli.text import counted, print_table
from millstream.views.json_text import to_json
from millstream.views.report import LedgerView

if TYPE_CHECKING:
    from millstream.lake.home import Home
    from millstream.lake.ledger import ServeEntry, SourceEntry, TableEntry

_SOURCES = ("source", "batches", "input", "ok", "late", "future", "malformed", "rejected", "")
_SERVES = ("serve", "batches", "input", "written", "quarantined", "", "store")
_TROUBLES = {
    "failed": "has failed, and lacks rows",
    "restarting": "fails and is tried again, and lacks rows",
    "stale": "reads one that has failed, and lacks rows",
}
_TABLES = ("table", "batches", "input", "written", "quarantined", "dropped", "", "rules")


def ledger(
    app: AppIfAny = None,
    *,
    profile: ProfileName = None,
    home: HomeDir = None,
    json: Json = False,
) -> None:
    """Show what became of every row: read, written or quarantined."""
    from millstream.loading import find_home

    view = read(find_home(app, home, profile))
    if json:
        print(to_json(view))
    else:
        show(view)


def read(home: Home) -> LedgerView:
    """Read the ledger of a home in which something has run."""
    from millstream.lake.ledger import read_ledger

    home.verify_in_use()
    return LedgerView.of(home, read_ledger(home))


def show(view: LedgerView) -> None:
    """Print a ledger."""
    parts = (
        (_SOURCES, [_source(entry) for entry in view.sources]),
        (_TABLES, [_table(entry) for entry in view.tables]),
        (_SERVES, [_serve(entry) for entry in view.serves]),
    )
    for number, (head, rows) in enumerate(part for part in parts if part[1]):
        if number:
            print()
        print_table(head, rows)
    print()
    for entry in view.sources:
        if entry.blank:
            print(f"  · {entry.name}: {counted(entry.blank, 'blank line')}, which are no rows")
        if entry.bent:
            print(
                f"  · {entry.name}: {counted(entry.bent, 'row')} read leniently; _bent says where"
            )
        if entry.unreadable:
            set_aside = counted(entry.unreadable, "file")
            print(f"  ! {entry.name}: {set_aside} set aside; `millstream files` says why")
    for name, trouble in view.troubles.items():
        print(f"  ✗ {name} {_TROUBLES[trouble.state]}: [{trouble.code}] {trouble.what}")
    balance = _balance(balanced=view.is_balanced) if view.is_complete else "✗ NOT COMPLETE"
    print(f"  {balance}: {view.home}")


def _source(entry: SourceEntry) -> list[str]:
    counts = [entry.batches, entry.input, *entry.verdicts.values()]
    return [entry.name, *(str(count) for count in counts), _balance(balanced=entry.is_balanced)]


def _table(entry: TableEntry) -> list[str]:
    counts = (entry.batches, entry.input, entry.written, entry.quarantined, entry.dropped)
    rules = " · ".join(f"{count} {rule!r}" for rule, count in entry.rules.items())
    balance = _balance(balanced=entry.is_balanced)
    return [entry.name, *(str(count) for count in counts), balance, rules]


def _serve(entry: ServeEntry) -> list[str]:
    counts = (entry.batches, entry.input, entry.written, entry.quarantined)
    balance = _balance(balanced=entry.is_balanced)
    return [entry.name, *(str(count) for count in counts), balance, entry.store]


def _balance(*, balanced: bool) -> str:
    return "✓ balanced" if balanced else "✗ NOT BALANCED"

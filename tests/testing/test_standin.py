from __future__ import annotations

from tests.graphs import graph, serve, source, table

import millstream as ms
from millstream.check import faults
from millstream.testing.standin import without_sinks


def test_what_is_served_is_kept_as_a_table_that_can_be_proved() -> None:
    sold = table("sold", "s", mode="update", key=("id",))
    keyed, console = (ms.SQLite("a.db", key="id"),), (ms.Console(),)
    app = graph(
        source("s"),
        sold,
        serve("plain", "s", to=console),
        serve("latest", "s", to=keyed, mode="update"),
        serve("keyless", "s", to=console, mode="update"),
        serve("changes", "sold", to=keyed, mode="update"),
    )

    kept = without_sinks(app)

    assert {t.name: (t.mode, t.key) for t in kept.tables if t != sold} == {
        "plain": ("append", ()),
        "latest": ("update", ("id",)),
        "changes": ("complete", ()),
    }
    assert not list(faults(kept))

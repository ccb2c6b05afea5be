"""A reader that looks at every table all the while, and never must see one go back."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from tests.chaos.commit import latest_version, read_commit
from tests.chaos.findings import Findings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.lake.home import Home

_EVERY_S = 0.2


class Poller:
    """A thread that reads versions and totals, from `with` to its end."""

    def __init__(self, home: Home) -> None:
        self.findings = Findings()
        self._home = home
        self._seen: dict[str, tuple[int, Mapping[str, int]]] = {}
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._halt.set()
        self._thread.join()

    def look(self) -> None:
        """Look at every table once."""
        for name in {*self._home.tables, *self._seen}:
            version = latest_version(self._home.table(name))
            before, totals = self._seen.get(name, (-1, {}))
            if version < before:
                self._find(f"{name!r} went from version {before} to {version}")
            if version < 0 or version == before:
                continue
            now = read_commit(self._home.table(name), version).facts.totals or totals
            for count, was in totals.items():
                if now.get(count, 0) < was:
                    self._find(f"{name!r} went from {was} {count} to {now.get(count, 0)}")
            self._seen[name] = (version, now)

    def _work(self) -> None:
        while not self._halt.wait(_EVERY_S):
            self.look()

    def _find(self, remark: str) -> None:
        self.findings += Findings(regressed=1, remarks=(remark,))

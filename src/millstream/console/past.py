"""Routes of history: what a dataset did over time, what happened, and every run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Response

from millstream.console.response import response
from millstream.observe.history_writer import HistoryWriter
from millstream.observe.record import EventRecord
from millstream.views.history import SeriesView

if TYPE_CHECKING:
    from millstream.console.deployment import Deployment
    from millstream.console.shared import SharedAnswers
    from millstream.lake.home import Home
    from millstream.observe.history import History

_READ = ["GET", "HEAD"]

When = Annotated[datetime | None, Query()]
Some = Annotated[int, Query(ge=1, le=1000)]


def routes(deployment: Deployment, history: History, shared: SharedAnswers) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/api")

    @router.api_route("/dataset/{name}/history", methods=_READ)
    def batches(name: str, since: When = None, until: When = None) -> Response:
        known = deployment.check_known(name)

        def read() -> Response:
            return response(SeriesView.of(history, known, since=since, until=until))

        return shared.response(("history", known, since, until), read)

    @router.api_route("/events-of-app", methods=_READ)
    def events(dataset: str | None = None, most: Some = 100) -> Response:
        known = deployment.check_known(dataset) if dataset else None
        return response({"events": history.events(dataset=known, most=most)})

    @router.api_route("/runs", methods=_READ)
    def runs(most: Some = 100) -> Response:
        return response({"runs": history.runs(most=most)})

    return router


class Audit:
    """Records what visitors do in the history of the app."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def __call__(self, kind: str, detail: str) -> None:
        """Record an action before it is done."""
        writer = HistoryWriter(self._home.history)
        try:
            writer.write([EventRecord(datetime.now(UTC), kind, detail=f"{detail}, in the console")])
        finally:
            writer.close()

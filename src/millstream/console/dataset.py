"""Routes of the app and its datasets: views as they are, rows through the process of queries."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response

from millstream.console.response import response
from millstream.console.sql import answered
from millstream.errors import catalogue
from millstream.model.dataset import View
from millstream.settings import __version__
from millstream.views.batch_sums import batch_sums
from millstream.views.code import CodeView
from millstream.views.dataset_detail import ShownView
from millstream.views.graph import GraphView
from millstream.views.overview import OverviewView
from millstream.views.report import SettingsView
from millstream.views.sizes import SizesView
from millstream.views.status import StatusView
from millstream.views.stored_rows import difference_query, rows_query, set_aside_query
from millstream.views.why import WhyView

if TYPE_CHECKING:
    from millstream.console.deployment import Deployment
    from millstream.console.shared import SharedAnswers
    from millstream.console.sql_process import SqlProcesses
    from millstream.observe.history import History

_READ = ["GET", "HEAD"]
_EVENTS = 60

Version = Annotated[int | None, Query(ge=0)]
Some = Annotated[int, Query(ge=1, le=1000)]


def routes(deployment: Deployment, history: History, shared: SharedAnswers) -> APIRouter:
    """Return the routes of what is declared, and of how it is."""
    router = APIRouter(prefix="/api")
    home, graph = deployment.home, deployment.graph

    @router.api_route("/overview", methods=_READ)
    def overview(request: Request) -> Response:
        role = request.state.role

        def look() -> Response:
            seen = OverviewView.of(home, graph, history)
            view = {
                "version": __version__,
                "role": role,
                "now": datetime.now(UTC),
                "graph": GraphView.of(graph) if graph else None,
                "status": StatusView.beside(seen, home, graph),
                "overview": seen,
                "events": history.events(most=_EVENTS),
            }
            return response(view)

        return shared.response(("overview", role), look)

    @router.api_route("/dataset/{name}", methods=_READ)
    def dataset(name: str) -> Response:
        known = deployment.check_known(name)
        return response(ShownView.of(home, graph, known, rows=0))

    @router.api_route("/dataset/{name}/why", methods=_READ)
    def why(name: str) -> Response:
        known = deployment.check_known(name)
        return response(WhyView.of(home, graph, known) if graph else None)

    @router.api_route("/dataset/{name}/code", methods=_READ)
    def code(name: str) -> Response:
        known = deployment.check_known(name)
        declared = graph.datasets.get(known) if graph else None
        return response(CodeView.of(declared) if declared else None)

    @router.api_route("/dataset/{name}/batches", methods=_READ)
    def batches(name: str, most: Some = 50) -> Response:
        known = deployment.check_known(name)
        is_stored = known in home.tables
        return response(batch_sums(home, known, most) if is_stored else ())

    @router.api_route("/storage", methods=_READ)
    def storage() -> Response:
        return shared.response("storage", lambda: response(SizesView.of(home, graph)))

    @router.api_route("/settings", methods=_READ)
    def settings() -> Response:
        found = deployment.settings() if deployment.settings else {}
        return response(SettingsView.of(found, ()))

    @router.api_route("/error/{code}", methods=_READ)
    def error(code: str) -> Response:
        return response({"code": code, "text": str(catalogue.find(code))})

    return router


def row_routes(deployment: Deployment, processes: SqlProcesses, shared: SharedAnswers) -> APIRouter:
    """Return the routes of stored rows."""
    router = APIRouter(prefix="/api/dataset/{name}")
    home, graph = deployment.home, deployment.graph

    def stored(text: str, most: int) -> Response:
        asked = {"sql": text, "most": most}
        return shared.response((text, most), lambda: answered(processes, asked))

    @router.api_route("/rows", methods=_READ)
    def rows(name: str, version: Version = None, most: Some = 50) -> Response:
        known = deployment.check_known(name)
        if graph and isinstance(graph.datasets.get(known), View):
            return response(None)
        return stored(rows_query(home, known, version), most)

    @router.api_route("/difference", methods=_READ)
    def difference(
        name: str,
        earlier: Annotated[int, Query(ge=0)],
        later: Annotated[int, Query(ge=0)],
        most: Some = 200,
    ) -> Response:
        return stored(difference_query(home, deployment.check_known(name), earlier, later), most)

    @router.api_route("/aside", methods=_READ)
    def aside(name: str, reason: str | None = None, most: Some = 100) -> Response:
        return stored(set_aside_query(home, deployment.check_known(name), reason), most)

    return router

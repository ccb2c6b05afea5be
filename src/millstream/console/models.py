"""Routes of models and of metrics: versions, comparisons, returns to a version, and `/metrics`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from millstream.console.body import field_of, read_body
from millstream.console.response import response
from millstream.views.metrics import metrics_text
from millstream.views.model_comparison import ComparisonView
from millstream.views.models import ModelsView, roll_back
from millstream.views.overview import OverviewView

if TYPE_CHECKING:
    from millstream.console.deployment import Deployment
    from millstream.console.shared import SharedAnswers
    from millstream.observe.history import History

_READ = ["GET", "HEAD"]
_MOST = 500
"""How many versions of a model, and drifts, a page gets."""
Body = Depends(read_body)


def routes(deployment: Deployment, history: History, shared: SharedAnswers) -> APIRouter:
    """Return the routes."""
    router = APIRouter()
    home, graph = deployment.home, deployment.graph

    @router.api_route("/api/models", methods=_READ)
    def models(most: Annotated[int, Query(ge=1, le=10_000)] = _MOST) -> Response:
        return shared.response(("models", most), lambda: response(_newest(most)))

    def _newest(most: int) -> dict[str, Any]:
        found = ModelsView.of(home, graph)
        shown = (
            replace(model, versions=model.versions[:most], drifts=model.drifts[:most])
            for model in found.models
        )
        return {"models": tuple(shown), "standing": found.standing}

    @router.api_route("/api/models/compare", methods=_READ)
    def compare(a: str, b: str) -> Response:
        return response(ComparisonView.of(home, graph, a, b))

    @router.post("/api/models/roll-back")
    def back(body: dict[str, Any] = Body) -> Response:
        model, version = field_of(body, "model", str), field_of(body, "version", str)
        agreed = field_of(body, "agreed", bool, default=False)
        done = roll_back(home, graph, model, version, agreed=agreed, by="in the console")
        return response(done)

    @router.api_route("/metrics", methods=_READ)
    def metrics(request: Request) -> Response:
        overview = OverviewView.of(home, graph, history)
        standing = ModelsView.of(home, graph).standing if home.tables else ()
        accept = request.headers.get("accept", "")
        text, kind = metrics_text(overview, history.totals(), accept, models=standing)
        return Response(text, 200, {"Cache-Control": "no-store"}, kind)

    return router

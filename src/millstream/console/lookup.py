"""Rows of served answers by their keys, and which answers those are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from millstream.console.response import response
from millstream.errors import fault
from millstream.serve.sink import readable_sinks
from millstream.views.served import ServedView

if TYPE_CHECKING:
    from millstream.model.graph import Graph
    from millstream.serve.lookup import Lookups


def routes(graph: Graph, lookups: Lookups) -> APIRouter:
    """Return the routes of look-ups; each request has a thread of its own while it is answered."""
    router = APIRouter(prefix="/api")

    @router.api_route("/served", methods=["GET", "HEAD"])
    def served() -> Response:
        return response([ServedView.of(name, graph, lookups) for name in readable_sinks(graph)])

    @router.api_route("/get/{dataset}", methods=["GET", "HEAD"])
    def get(dataset: str, request: Request) -> Response:
        key = request.query_params.multi_items()
        row = lookups.of(graph, dataset).get_by_text(key)
        if row is None:
            raise fault(
                "ROW_MISSING",
                dataset=dataset,
                key=", ".join((f"{column}={value!r}" for column, value in key)),
            )
        return response(row)

    return router

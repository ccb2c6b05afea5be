"""Routes of the ledger and of alerts: what became of rows, and what is sent, retried, silenced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from millstream.alert.deliveries import STATES
from millstream.console.body import field_of, read_body
from millstream.console.response import response
from millstream.errors import fault
from millstream.lake.ledger import read_ledger
from millstream.model.duration import parse_duration
from millstream.views import alerts as view
from millstream.views.report import LedgerView

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from millstream.console.deployment import Deployment
    from millstream.console.shared import SharedAnswers

_READ = ["GET", "HEAD"]
Body = Depends(read_body)


def routes(
    deployment: Deployment, audit: Callable[[str, str], None], shared: SharedAnswers
) -> APIRouter:
    """Return the routes.

    Args:
        deployment: The app.
        shared: The answers that open pages share.
        audit: Records an action before it is done: its kind, and its details in words.
    """
    router = APIRouter(prefix="/api")
    home, graph = deployment.home, deployment.graph

    @router.api_route("/ledger", methods=_READ)
    def ledger() -> Response:
        return shared.response("ledger", lambda: response(LedgerView.of(home, read_ledger(home))))

    @router.api_route("/alerts", methods=_READ)
    def alerts(
        state: str | None = None,
        alert: str | None = None,
        most: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        if state is not None and state not in STATES:
            expected = f"one of {', '.join(STATES)}"
            raise fault("ARGUMENT_REFUSED", option="state", value=state, expected=expected)
        view.check_alert(graph, alert)
        return response(view.AlertsView.of(home, alert=alert, state=state, limit=most))

    @router.post("/alerts/retry")
    def retry(body: dict[str, Any] = Body) -> Response:
        alert, id_ = field_of(body, "alert", str, "") or None, field_of(body, "id", str, "")
        view.check_alert(graph, alert)
        audit("alerts_retried", f"{alert or 'all alerts'} {id_}".strip())
        return response(view.retry(home, alert=alert, id_=id_))

    @router.post("/alerts/silence")
    def silence(body: dict[str, Any] = Body) -> Response:
        alert, key = field_of(body, "alert", str, "") or None, field_of(body, "key", dict, {})
        length = _length_of(field_of(body, "for", str))
        about = {str(name): str(value) for name, value in key.items()}
        view.check_alert(graph, alert)
        if length:
            view.check_key_columns(graph, alert, about)
        named = ", ".join(f"{name}={value}" for name, value in about.items())
        audit("alerts_silenced", f"{alert or 'all alerts'} {named} for {body['for']}")
        return response(view.silence(home, alert=alert, key=about, for_s=length.total_seconds()))

    return router


def _length_of(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError:
        expected = 'a length of time such as 60s or "5 minutes"'
        raise fault("ARGUMENT_REFUSED", option="for", value=text, expected=expected) from None

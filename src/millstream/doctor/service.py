"""Whether the servers that an app names can be reached from here."""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from millstream.doctor.diagnosis import Diagnosis, within
from millstream.settings.secret import revealed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.model.graph import Graph

_ANSWERS_WITHIN_S = 2.0
_MASTER = re.compile(r"spark://([^,]+)")


def look_at_services(graph: Graph, *, master: str) -> Iterator[Diagnosis]:
    """Connect to the Spark master and the servers of every source and sink, concurrently."""
    called = [(f"source {s.name}", a) for s in graph.sources for a in _addresses(s.connector)]
    called += [(f"serve {s.name}", a) for s in graph.serves for to in s.to for a in _addresses(to)]
    called += [(f"alert {d.name}", a) for d in graph.alerts for to in d.to for a in _addresses(to)]
    if cluster := _MASTER.match(master):
        called.append(("master", cluster[1]))
    if called:
        with ThreadPoolExecutor(len(called)) as callers:
            yield from callers.map(lambda call: reach(*call), called)


def reach(subject: str, address: str) -> Diagnosis:
    """Open a connection to `host:port`, and close it."""
    host, _, port = revealed(address).rpartition(":")
    if not host or not port.isdigit():
        return Diagnosis(subject, "bad", f"{str(address)!r} is no address", "write host:port")
    target = (host.strip("[]"), int(port))
    error = within(_ANSWERS_WITHIN_S, lambda: socket.create_connection(target).close())
    if error is None:
        return Diagnosis(subject, "ok", f"{address} answers")
    what = f"{address} does not answer: {error.strerror or type(error).__name__}"
    return Diagnosis(
        subject, "bad", what, "start it, correct the address, or open the network to it"
    )


def _addresses(connector: object) -> tuple[str, ...]:
    return getattr(connector, "addresses", ())

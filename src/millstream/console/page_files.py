"""The files of the web page, read once: an address is looked up, and never becomes a path."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.resources.abc import Traversable

PAGES = (
    *("", "quality", "ledger", "alerts", "models", "served", "state", "storage", "sql", "runs"),
    "settings",
    "dataset/{name}",
)
"""What the page answers itself, from one HTML file."""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file, as it is sent."""

    type: str
    content: bytes
    etag: str

    @staticmethod
    def of(name: str, content: bytes) -> PageFile:
        """Prepare a file."""
        kind = _TYPES["." + name.rpartition(".")[2]]
        packed = gzip.compress(content, mtime=0)
        return PageFile(kind, packed, f'"{hashlib.sha256(packed).hexdigest()[:16]}"')

    def response(self, request: Request) -> Response:
        """Send the file, or that the browser has it already."""
        headers = {"ETag": self.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(self.content, 200, headers, self.type)
        return Response(gzip.decompress(self.content), 200, headers, self.type)


def page_files() -> Mapping[str, PageFile]:
    """Read all files of the page."""
    root = files("millstream.console") / "static"
    return {name: PageFile.of(name, file.read_bytes()) for name, file in _all(root)}


def routes() -> APIRouter:
    """Return the routes of the page, which holds no data: it needs no token."""
    router, known = APIRouter(), page_files()
    methods = ["GET", "HEAD"]

    def index(request: Request) -> Response:
        return known[_INDEX].response(request)

    for page in PAGES:
        router.add_api_route(f"/{page}", index, methods=methods)
    for name, file in known.items():
        router.add_api_route(f"/static/{name}", _sender(file), methods=methods)
    return router


def _sender(file: PageFile) -> Callable[[Request], Response]:
    def send(request: Request) -> Response:
        return file.response(request)

    return send


def _all(folder: Traversable, within: str = "") -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda found: found.name):
        if entry.is_dir():
            yield from _all(entry, f"{within}{entry.name}/")
        elif "." + entry.name.rpartition(".")[2] in _TYPES:
            yield within + entry.name, entry

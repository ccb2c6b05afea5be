"""Options of stores that keep rows by key, and which of them go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.errors import fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from millstream.errors import Location, MillstreamError


def as_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return names as a tuple; a single name is a tuple of one.

    >>> as_names("page"), as_names(["page", "day"])
    (('page',), ('page', 'day'))
    """
    return (names,) if isinstance(names, str) else tuple(names)


def keyless_update(
    store: str, sink: Any, serve: str, mode: str, at: Location
) -> Iterator[MillstreamError]:
    """Find options that need a key where there is none."""
    if sink.key:
        return
    why, use = "", 'say which columns identify a row: key=["…"]'
    if mode == "update":
        why = "mode='update' changes rows, and no key says which"
    elif sink.delete_when:
        why = "delete_when deletes rows, and no key says which"
    elif sink.newest_by:
        why = "newest_by chooses between rows with one key, and there is no key"
    if why:
        yield fault("STORE_MODE", at=at, serve=serve, store=store, why=why, use=use)


def unusable_options(
    store: str, sink: Any, serve: str, mode: str, at: Location
) -> Iterator[MillstreamError]:
    """Find options that would have no effect, or the wrong one."""
    if sink.newest_by and sink.delete_when:
        why = "a deleted row leaves nothing behind to compare newest_by with, so that an older row "
        use = "leave newest_by out, or keep the row and mark it as deleted in a column"
        yield fault(
            "STORE_MODE", at=at, serve=serve, store=store, why=f"{why}would bring it back", use=use
        )
    if mode == "complete" and (sink.newest_by or sink.delete_when):
        option = "newest_by" if sink.newest_by else "delete_when"
        why = f"mode='complete' replaces all rows, so that {option} has nothing to do"
        use = f"leave {option} out, or filter in the query"
        yield fault("STORE_MODE", at=at, serve=serve, store=store, why=why, use=use)

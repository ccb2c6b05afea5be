"""Errors of what is called what, and of who reads whom."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

from millstream.errors.base import DeclarationError, Location, MillstreamError, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


class NoAppError(DeclarationError):
    """The app file declares no App."""

    code = "NO_APP"

    def __init__(self, file: str, *, name: str | None = None, names: Sequence[str] = ()) -> None:
        declare = 'declare one at the top level: app = ms.App("name")'
        offer = f"{closest(name or '', names)}Apps are {listed(names)}" if names else declare
        super().__init__(
            f"app file {file!r} holds no App" + (f" {name!r}" if name else ""),
            fix=offer,
            at=Location(file, 1),
        )


class TwoAppsError(DeclarationError):
    """The app file declares more than one App."""

    code = "TWO_APPS"

    def __init__(self, file: str, *, names: Sequence[str]) -> None:
        super().__init__(
            f"app file {file!r} holds {len(names)} Apps: {', '.join(names)}",
            fix=f"keep one App per file, or name the one to use: {file}:{names[0]}",
            at=Location(file, 1),
        )


class EmptyAppError(DeclarationError):
    """The app declares nothing that would run."""

    code = "EMPTY_APP"

    def __init__(self, app: str, *, at: Location | None = None) -> None:
        super().__init__(
            f"app {app!r} declares no source",
            fix="declare where rows come from with @app.source, and what to keep with @app.table",
            at=at,
        )


class NameRefusedError(DeclarationError):
    """A dataset or app has a name that cannot be a table, a folder and a SQL name."""

    code = "NAME_REFUSED"

    def __init__(self, name: str, *, at: Location | None = None) -> None:
        super().__init__(
            f"{name!r} cannot name an app or a dataset",
            fix="use a lower-case letter, then such letters, digits and single underscores, "
            "at most 63 characters",
            at=at and at.of("name"),
        )


class DuplicateNameError(DeclarationError):
    """Two datasets have one name."""

    code = "DUPLICATE_NAME"

    def __init__(self, name: str, *, first: Location, at: Location) -> None:
        super().__init__(
            f"dataset {name!r} is declared twice, first at {first.of('name')}",
            fix="rename one of the two",
            at=at.of("name"),
        )


class UnknownInputError(DeclarationError):
    """A dataset reads a name that nothing declares."""

    code = "UNKNOWN_INPUT"

    def __init__(self, name: str, *, dataset: str, declared: Sequence[str], at: Location) -> None:
        self.name = name
        super().__init__(
            f"{dataset!r} reads {name!r}, which is not declared",
            fix=f"{closest(name, declared)}declared names are {listed(declared)}",
            at=at.of("from", name),
        )


class CycleError(DeclarationError):
    """Datasets read each other in a circle."""

    code = "CYCLE"

    def __init__(self, names: Sequence[str], *, at: Location) -> None:
        super().__init__(
            f"datasets read each other in a circle: {' reads '.join(repr(n) for n in names)}",
            fix="break the circle: one of them must not read the next",
            at=at.of("from", names[1]),
        )


class NoInputError(DeclarationError):
    """A table or view reads nothing."""

    code = "NO_INPUT"

    def __init__(self, dataset: str, *, at: Location) -> None:
        super().__init__(
            f"{dataset!r} reads nothing",
            fix="give the function a parameter named after each dataset it reads",
            at=at,
        )


class SqlRefusedError(DeclarationError):
    """A SQL dataset is not one readable query."""

    code = "SQL_REFUSED"

    def __init__(self, dataset: str, *, why: str, at: Location) -> None:
        super().__init__(
            f"the SQL of {dataset!r} is not one query: {why}",
            fix="write one SELECT whose FROM names are datasets",
            at=at,
        )


class FaultsError(DeclarationError):
    """The application has several faults."""

    code = "FAULTS"

    def __init__(self, faults: Sequence[MillstreamError]) -> None:
        self.faults = tuple(faults)
        told = indent("\n".join(str(fault) for fault in faults), "  ")
        super().__init__(f"{len(faults)} faults:\n{told}", fix="mend each of them")

    @classmethod
    def raise_for(cls, faults: Sequence[MillstreamError]) -> None:
        """Raise the fault if it is one, this error if there are several, and nothing if none."""
        if len(faults) == 1:
            raise faults[0]
        if faults:
            raise cls(faults)

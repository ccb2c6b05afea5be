"""Errors of `millstream.toml`: its keys, its values, and what they are bound to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import CommandError, DeclarationError, Location, closest, listed

if TYPE_CHECKING:
    from collections.abc import Sequence


class ProfileFileError(DeclarationError):
    """The file is not TOML."""

    code = "PROFILE_FILE"

    def __init__(self, why: str, *, at: Location) -> None:
        super().__init__(f"the file cannot be read: {why}", fix="mend the line above", at=at)


class UnknownProfileError(CommandError):
    """A profile was asked for that the file does not have."""

    code = "UNKNOWN_PROFILE"

    def __init__(self, name: str, *, known: Sequence[str], file: str | None) -> None:
        super().__init__(
            f"no profile {name!r} in {file}"
            if file
            else f"no profile {name!r}: there is no millstream.toml beside the app or above it",
            fix=f"{closest(name, known)}profiles are {listed(known)}"
            if file
            else f"write a millstream.toml with [profile.{name}]",
        )


class UnknownKeyError(DeclarationError):
    """A key does not exist."""

    code = "UNKNOWN_KEY"

    def __init__(self, key: str, *, table: str, known: Sequence[str], at: Location) -> None:
        super().__init__(
            f"{key!r} is no key of {table!r}",
            fix=f"{closest(key, known)}keys are {listed(known)}",
            at=at,
        )


class ValueRefusedError(DeclarationError):
    """A key has a value that it cannot have."""

    code = "VALUE_REFUSED"

    def __init__(self, key: str, *, got: str, expected: str, at: Location) -> None:
        super().__init__(f"{key!r} is {got}", fix=f"write {expected}", at=at)


class KeyRequiredError(DeclarationError):
    """A key is missing."""

    code = "KEY_REQUIRED"

    def __init__(self, name: str, *, kind: str, key: str, at: Location, of: str = "source") -> None:
        super().__init__(
            f"{of} {name!r} has kind {kind!r} and no {key!r}",
            fix=f"say it: {key} = …",
            at=at,
        )


class UnknownSourceError(DeclarationError):
    """A source or served answer is bound that the app does not declare."""

    code = "UNKNOWN_SOURCE"

    def __init__(
        self, name: str, *, declared: Sequence[str], at: Location, of: str = "source"
    ) -> None:
        there = "served answers" if of == "serve" else f"{of}s"
        super().__init__(
            f"{of} {name!r} is bound, but the app does not declare it",
            fix=f"{closest(name, declared)}{there} are {listed(declared)}",
            at=at,
        )


class UnknownKindError(DeclarationError):
    """A source or served answer is bound to a kind that does not exist."""

    code = "UNKNOWN_KIND"

    def __init__(
        self, kind: str, *, name: str, known: Sequence[str], at: Location, of: str = "source"
    ) -> None:
        super().__init__(
            f"{of} {name!r} has kind {kind!r}",
            fix=f"{closest(kind, known)}kinds are {listed(known)}",
            at=at,
        )


class ColumnsFixedError(DeclarationError):
    """A source is bound to a connector that cannot give its columns."""

    code = "COLUMNS_FIXED"

    def __init__(self, source: str, *, kind: str, gives: str, at: Location) -> None:
        super().__init__(
            f"source {source!r} has kind {kind!r}, which gives {gives!r} "
            "and not the columns of the code",
            fix="bind it to another kind: the schema stays the one of the code",
            at=at,
        )


class SparkSettingRefusedError(DeclarationError):
    """A Spark setting is one that Millstream has to choose itself."""

    code = "SPARK_SETTING_REFUSED"

    def __init__(self, name: str, *, why: str, at: Location) -> None:
        super().__init__(f"{name!r} cannot be set: {why}", fix="leave it out", at=at)


class VariableMissingError(CommandError):
    """A variable of the environment that the profile names is not set."""

    code = "VARIABLE_MISSING"

    def __init__(self, key: str, *, names: Sequence[str], at: Location) -> None:
        super().__init__(
            f"{key!r} needs {listed(names)}, which the environment does not have",
            fix="export it, or give a default: ${NAME:-default}",
            at=at,
        )

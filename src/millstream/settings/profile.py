"""What `millstream.toml` says: profiles, each value with its line."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.errors import Location, MillstreamError, closest, fault, listed, relative
from millstream.model.duration import parse_duration
from millstream.settings import DEFAULT_PROFILE, Setting, resolve_profile
from millstream.settings.secret import has_variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

FILE = "millstream.toml"

KEYS: Mapping[str, str] = {
    "home": "Where the app is deployed.",
    "master": "The Spark master.",
    "keep_versions": "How long earlier versions of tables can be read.",
    "spark": "Settings of Spark, by their full names.",
    "sources": "Where sources come from, by the names they have in the app.",
    "serve": "Which store served answers go to, by the names they have in the app.",
    "alert": "Where alerts are sent, by the names they have in the app.",
    "tables": "When tables are computed, by the names they have in the app.",
}
"""The keys of a profile."""

_WORDS = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a text",
    list: "an array",
    dict: "a table",
}
_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(#.*)?")
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")

Names = tuple[str, ...]
"""The names on the way to a value."""


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """A value as it is written, and where."""

    value: Any
    at: Location
    profile: str

    @property
    def origin(self) -> str:
        """Return where it comes from."""
        return f"{self.at} (profile {self.profile})"


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile of a file, with what it inherits; or, without a file, nothing."""

    name: Setting
    file: Path | None = None
    entries: Mapping[Names, ProfileEntry] = field(default_factory=dict)
    faults: tuple[MillstreamError, ...] = ()

    @property
    def home(self) -> Setting | None:
        """The home it says."""
        return self._setting("home")

    @property
    def master(self) -> Setting | None:
        """The Spark master it says."""
        return self._setting("master")

    @property
    def keep_versions(self) -> Setting | None:
        """How long it says that versions are kept."""
        return self._setting("keep_versions")

    @property
    def spark(self) -> Mapping[str, ProfileEntry]:
        """The Spark settings; their names may be written with quotes or without."""
        return joined(self.below("spark"))

    def by_name(self, key: str) -> Mapping[str, Mapping[Names, ProfileEntry]]:
        """Return the entries of each dataset under a key, such as `sources`."""
        found: dict[str, dict[Names, ProfileEntry]] = {}
        for path, entry in self.below(key).items():
            found.setdefault(path[0], {})[path[1:]] = entry
        return found

    def below(self, key: str) -> Mapping[Names, ProfileEntry]:
        """Return the entries under a key of the profile."""
        return {path[1:]: e for path, e in self.entries.items() if path[0] == key and path[1:]}

    def _setting(self, key: str) -> Setting | None:
        entry = self.entries.get((key,))
        return Setting(entry.value, entry.origin) if entry else None


def joined(entries: Mapping[Names, ProfileEntry]) -> dict[str, ProfileEntry]:
    """Name values by their whole path, with or without quotes in the file."""
    return {".".join(path): entry for path, entry in entries.items()}


def find_file(folder: Path) -> Path | None:
    """Find the file in a folder, or above it as far as the root of its repository."""
    folders = (folder, *folder.parents)
    root = next((n for n, above in enumerate(folders) if (above / ".git").exists()), 0)
    return next((f / FILE for f in folders[: root + 1] if (f / FILE).is_file()), None)


def read_profile(folder: Path, chosen: str | None = None) -> Profile:
    """Read the profile that was chosen, of the file that belongs to a folder.

    What is wrong with the file is among its `faults`; nothing is raised.
    """
    name, file = resolve_profile(chosen), find_file(folder)
    if file is None and name.value == DEFAULT_PROFILE:
        return Profile(name)
    if file is None:
        unknown = fault(
            "UNKNOWN_PROFILE",
            name=name.value,
            where=": there is no millstream.toml beside the app or above it",
            instead=f"write a millstream.toml with [profile.{name.value}]",
        )
        return Profile(name, faults=(unknown,))
    try:
        text = file.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return Profile(name, file, faults=(_unreadable(file, error),))
    return _Document(file, _lines(text), document).profile(name)


def got(value: object) -> str:
    """Return what was written, in an error.

    >>> got(3), got({"a": 1})
    ('3 (an integer)', 'a table')
    """
    word = _WORDS.get(type(value), "a date or time")
    return word if isinstance(value, dict | list) else f"{value!r} ({word})"


@dataclass(frozen=True, slots=True)
class _Document:
    """A file that is TOML, if not yet a right one."""

    file: Path
    lines: Mapping[Names, int]
    content: Mapping[str, Any]

    def profile(self, name: Setting) -> Profile:
        profiles = self.content.get("profile", {})
        faults = list(self._faults(profiles))
        if faults:
            return Profile(name, self.file, faults=tuple(faults))
        if name.value not in (DEFAULT_PROFILE, *profiles):
            known = sorted({DEFAULT_PROFILE, *profiles})
            unknown = fault(
                "UNKNOWN_PROFILE",
                name=name.value,
                where=f" in {relative(str(self.file))}",
                instead=f"{closest(name.value, known)}profiles are {listed(known)}",
            )
            return Profile(name, self.file, faults=(unknown,))
        chosen = {} if name.value == DEFAULT_PROFILE else self._entries(name.value)
        return Profile(name, self.file, _inherited(self._entries(DEFAULT_PROFILE), chosen))

    def _entries(self, profile: str) -> dict[Names, ProfileEntry]:
        own = self.content.get("profile", {}).get(profile, {})
        return {
            path: ProfileEntry(value, self._at(("profile", profile, *path)), profile)
            for path, value in _leaves(own)
            if path
        }

    def _faults(self, profiles: Any) -> Iterator[MillstreamError]:
        for key in self.content:
            if key != "profile":
                known = ["profile"]
                yield fault(
                    "UNKNOWN_KEY",
                    at=self._at((key,)),
                    key=key,
                    table=FILE,
                    nearest=closest(key, known),
                    known=listed(known),
                )
        if not isinstance(profiles, dict):
            yield self._refused(("profile",), profiles, "tables such as [profile.prod]")
            return
        for name, content in profiles.items():
            if not isinstance(content, dict):
                yield self._refused(("profile", name), content, f"a table: [profile.{name}]")
                continue
            for key, value in content.items():
                yield from self._fault(("profile", name, key), value)

    def _fault(self, path: Names, value: Any) -> Iterator[MillstreamError]:
        key = path[-1]
        if key not in KEYS:
            table = ".".join(path[:-1])
            yield fault(
                "UNKNOWN_KEY",
                at=self._at(path),
                key=key,
                table=table,
                nearest=closest(key, KEYS),
                known=listed(KEYS),
            )
        elif key in ("home", "master"):
            yield from self._text_fault(path, value)
        elif key == "keep_versions":
            if not _is_length(value):
                yield self._refused(path, value, 'a length of time, such as "7 days"')
        elif not isinstance(value, dict):
            yield self._refused(path, value, f"a table: [{'.'.join(path)}]")
        elif key == "spark":
            yield from self._spark_faults(path, value)
        else:
            for name, content in value.items():
                if not isinstance(content, dict):
                    table = f"[{'.'.join((*path, name))}]"
                    yield self._refused((*path, name), content, f"a table: {table}")

    def _text_fault(self, path: Names, value: Any) -> Iterator[MillstreamError]:
        if not isinstance(value, str) or not value:
            yield self._refused(path, value, "a text")
        elif has_variable(value):
            expected = (
                f"it plainly, or set MILLSTREAM_{path[-1].upper()}: "
                "the value of ${…} is never shown, and this is shown everywhere"
            )
            yield self._refused(path, value, expected)

    def _spark_faults(self, path: Names, value: Mapping[str, Any]) -> Iterator[MillstreamError]:
        for rest, leaf in _leaves(value):
            name = ".".join(rest)
            if not name.startswith("spark."):
                at = self._at((*path, *rest))
                known = [f"spark.{name}"]
                yield fault(
                    "UNKNOWN_KEY",
                    at=at,
                    key=name,
                    table=".".join(path),
                    nearest=closest(name, known),
                    known=listed(known),
                )
            elif not isinstance(leaf, str | int | float):
                yield self._refused((*path, *rest), leaf, "a text, a number or a boolean")

    def _refused(self, path: Names, value: object, expected: str) -> MillstreamError:
        return fault(
            "VALUE_REFUSED",
            at=self._at(path),
            key=".".join(path),
            got=got(value),
            expected=expected,
        )

    def _at(self, path: Names) -> Location:
        """Find the line of a value, or of the nearest table that holds it."""
        above = (path[:n] for n in range(len(path), 0, -1))
        line = next((self.lines[p] for p in above if p in self.lines), 1)
        return Location(relative(str(self.file)), line)


def _is_length(value: object) -> bool:
    try:
        return isinstance(value, str) and parse_duration(value) is not None
    except ValueError:
        return False


def _inherited(
    default: Mapping[Names, ProfileEntry], own: Mapping[Names, ProfileEntry]
) -> dict[Names, ProfileEntry]:
    """Add what a profile does not say; a dataset whose kind is named takes nothing over."""
    bound = ("sources", "serve", "alert")
    replaced = {path[:2] for path in own if path[0] in bound and path[2:] == ("kind",)}
    return {path: entry for path, entry in default.items() if path[:2] not in replaced} | dict(own)


def _leaves(value: Any, path: Names = ()) -> Iterator[tuple[Names, Any]]:
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from _leaves(below, (*path, key))
    else:
        yield path, value


def _lines(text: str) -> dict[Names, int]:
    """Find the line of each table and key that has one of its own."""
    table: Names = ()
    found: dict[Names, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _names(header[1])
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault((*table, *_names(key[1])), number)
    return found


def _names(dotted: str) -> Names:
    try:
        [(path, _)] = _leaves(tomllib.loads(f"{dotted} = 0"))
    except tomllib.TOMLDecodeError:
        return ()
    return path


def _unreadable(file: Path, error: Exception) -> MillstreamError:
    line = re.search(r" \(at line (\d+), column \d+\)$", str(error))
    why = str(error).removesuffix(line[0]) if line else str(error)
    return fault(
        "PROFILE_FILE", at=Location(relative(str(file)), int(line[1]) if line else 1), why=why
    )

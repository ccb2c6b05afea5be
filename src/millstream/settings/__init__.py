"""Typed settings with one order: command line, environment, millstream.toml, code, default."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__version__ = "0.1.0"

HOME_VARIABLE = "MILLSTREAM_HOME"
MASTER_VARIABLE = "MILLSTREAM_MASTER"
CACHE_VARIABLE = "MILLSTREAM_CACHE"
PROFILE_VARIABLE = "MILLSTREAM_PROFILE"
TOKEN_VARIABLE = "MILLSTREAM_CONSOLE_TOKEN"

DEFAULT_FILE = "app.py"
"""The app file that is meant where none is named."""

DEFAULT_PROFILE = "default"
"""The profile that is meant where none is named, and that all others inherit from."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it came from."""

    value: str
    origin: str


def resolve_home(
    given: str | Path | None,
    *,
    app: str,
    profile: Setting | None = None,
    code: Setting | None = None,
) -> Setting:
    """Choose the home; by default `.millstream/<app>`."""
    default = Setting(f".millstream/{app}", "default")
    return given_in(given, HOME_VARIABLE) or profile or code or default


def resolve_master(
    given: str | None, *, profile: Setting | None = None, code: Setting | None = None
) -> Setting:
    """Choose Spark's master; by default `local[*]`."""
    default = Setting("local[*]", "default")
    return given_in(given, MASTER_VARIABLE) or profile or code or default


def resolve_profile(given: str | None) -> Setting:
    """Choose the profile by its name."""
    return given_in(given, PROFILE_VARIABLE) or Setting(DEFAULT_PROFILE, "default")


def given_in(given: str | Path | None, variable: str) -> Setting | None:
    """Take what was given on the command line, else in a variable of the environment."""
    if given:
        return Setting(str(given), "command line")
    if found := os.environ.get(variable):
        return Setting(found, f"environment ({variable})")
    return None


def cache_dir() -> Path:
    """Find the cache: `$MILLSTREAM_CACHE`, else the user's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(shared).absolute() / "millstream"

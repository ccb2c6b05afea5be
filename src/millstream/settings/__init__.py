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
"""The app file where none is named."""

DEFAULT_PROFILE = "default"
"""The profile where none is named; all others inherit from it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it came from."""

    value: str
    origin: str


def resolve_home(
    option: str | Path | None,
    *,
    app: str,
    profile: Setting | None = None,
    code: Setting | None = None,
) -> Setting:
    """Choose the home; by default `.millstream/<app>`."""
    default = Setting(f".millstream/{app}", "default")
    return option_or_variable(option, HOME_VARIABLE) or profile or code or default


def resolve_master(
    option: str | None, *, profile: Setting | None = None, code: Setting | None = None
) -> Setting:
    """Choose Spark's master; by default `local[*]`."""
    default = Setting("local[*]", "default")
    return option_or_variable(option, MASTER_VARIABLE) or profile or code or default


def resolve_profile(option: str | None) -> Setting:
    """Choose the profile by its name."""
    return option_or_variable(option, PROFILE_VARIABLE) or Setting(DEFAULT_PROFILE, "default")


def option_or_variable(option: str | Path | None, variable: str) -> Setting | None:
    """Return the value of the command line, else that of an environment variable."""
    if option:
        return Setting(str(option), "command line")
    if found := os.environ.get(variable):
        return Setting(found, f"environment ({variable})")
    return None


def cache_dir() -> Path:
    """Find the cache: `$MILLSTREAM_CACHE`, else the user's cache folder."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).absolute()
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(shared).absolute() / "millstream"

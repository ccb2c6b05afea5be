"""Typed settings with one order of precedence: command line, environment, code, default."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__version__ = "0.1.0"

HOME_VARIABLE = "MILLSTREAM_HOME"
MASTER_VARIABLE = "MILLSTREAM_MASTER"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it came from."""

    value: str
    origin: str


def resolve_home(given: str | Path | None, *, app: str, code: str | Path | None = None) -> Setting:
    """Choose the home: what was given, `MILLSTREAM_HOME`, the app's own, or `.millstream/<app>`."""
    return _first(
        (given, "command line"),
        (os.environ.get(HOME_VARIABLE), f"environment ({HOME_VARIABLE})"),
        (code, "code"),
        (f".millstream/{app}", "default"),
    )


def resolve_master(given: str | None, *, code: str | None = None) -> Setting:
    """Choose Spark's master: what was given, `MILLSTREAM_MASTER`, the app's own, or `local[*]`."""
    return _first(
        (given, "command line"),
        (os.environ.get(MASTER_VARIABLE), f"environment ({MASTER_VARIABLE})"),
        (code, "code"),
        ("local[*]", "default"),
    )


def cache_dir() -> Path:
    """Find the cache: `$MILLSTREAM_CACHE`, else the user's cache folder."""
    if chosen := os.environ.get("MILLSTREAM_CACHE"):
        return Path(chosen).absolute()
    shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(shared).absolute() / "millstream"


def _first(*candidates: tuple[str | Path | None, str]) -> Setting:
    return next(Setting(str(value), origin) for value, origin in candidates if value)

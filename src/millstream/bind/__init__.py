"""Where data comes from in this environment: a profile applied to what the code declares."""

from __future__ import annotations

from millstream.bind.apply import BoundApp, bind

__all__ = ["BoundApp", "bind"]

"""Where data comes from in this environment: a profile applied to what the code declares."""

from __future__ import annotations

from millstream.bind.apply import Bound, bind

__all__ = ["Bound", "bind"]

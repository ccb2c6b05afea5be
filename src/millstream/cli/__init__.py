"""The command line: each command parses, calls one function and prints."""

from __future__ import annotations

from millstream.cli.program import main

__all__ = ["main"]

"""Errors of requests to the console, as they are met."""

from __future__ import annotations

from millstream.errors import (
    ConsoleAddressError,
    ConsoleHostError,
    ConsoleReadOnlyError,
    ConsoleTokenError,
)
from millstream.settings import TOKEN_VARIABLE

SAMPLES = (
    ConsoleTokenError(given=False, variable=TOKEN_VARIABLE),
    ConsoleTokenError(given=True, variable=TOKEN_VARIABLE),
    ConsoleHostError("rebound.example"),
    ConsoleReadOnlyError("POST"),
    ConsoleAddressError("/api/serve", known=["/api/served", "/api/get/NAME?COLUMN=VALUE"]),
)

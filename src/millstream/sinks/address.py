"""Addresses of servers: whoever connects has the password, whoever prints does not."""

from __future__ import annotations

import re
from urllib.parse import unquote

from millstream.errors import conceal
from millstream.settings.secret import Secret

_HIDDEN = "***"
_PASSWORDS = (
    re.compile(r"(?P<before>://[^:/@]*:)(?P<password>.*)(?P<after>@)"),
    re.compile(r"(?P<before>[?&]password=)(?P<password>[^&]*)(?P<after>)"),
    re.compile(
        r"(?P<before>\bpassword\s*=\s*')(?P<password>(?:[^'\\]|\\.)*)(?P<after>')", re.IGNORECASE
    ),
    re.compile(r"(?P<before>\bpassword\s*=\s*)(?P<password>[^\s'&]+)(?P<after>)", re.IGNORECASE),
)


def guarded(address: str) -> str:
    """Have an address printed without its password, here and in whatever errors tell.

    >>> print(guarded("postgresql://me:hunter2@db/shop"), guarded("password=hunter2 host=db"))
    postgresql://me:***@db/shop password=*** host=db
    """
    if isinstance(address, Secret):
        return address
    shown = address
    for pattern in _PASSWORDS:
        for found in pattern.finditer(address):
            conceal(found["password"], _HIDDEN)
            conceal(unquote(found["password"]), _HIDDEN)
        shown = pattern.sub(rf"\g<before>{_HIDDEN}\g<after>", shown)
    return address if shown == address else Secret(address, shown)

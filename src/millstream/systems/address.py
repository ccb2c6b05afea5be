"""Addresses of servers: connections get the password, printed texts do not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import unquote

from millstream.errors import conceal
from millstream.settings.secret import Secret, is_private

if TYPE_CHECKING:
    from collections.abc import Mapping

Option = TypeVar("Option", bound="str | int | bool")

_HIDDEN = "***"
_IN_QUOTES = re.compile(r'password\s*=\s*"((?:[^"\\]|\\.)*)"')
_PASSWORDS = (
    re.compile(r"(?P<before>://[^:/@]*:)(?P<password>.*)(?P<after>@)"),
    re.compile(r"(?P<before>[?&](?:ssl)?password=)(?P<password>[^&]*)(?P<after>)", re.IGNORECASE),
    re.compile(
        r"(?P<before>\b(?:ssl)?password\s*=\s*')(?P<password>(?:[^'\\]|\\.)*)(?P<after>')",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?P<before>\b(?:ssl)?password\s*=\s*)(?P<password>(?!')(?:[^\s&\\]|\\.)+)(?P<after>)",
        re.IGNORECASE,
    ),
)
_ESCAPED = re.compile(r"\\(.)")
"""A character of a password that would otherwise end it."""
_KNOWN = re.compile(r"\s*([A-Za-z][\w+.-]*://|\w+\s*=)")
"""How an address begins in which the password can be found."""


def guarded(address: str) -> str:
    """Hide the password of an address wherever it is printed, also in error messages.

    >>> print(guarded("postgresql://me:hunter2@db/shop"), guarded("password=hunter2 host=db"))
    postgresql://me:***@db/shop password=*** host=db

    Of one that cannot be read, nothing is shown.

    >>> print(guarded("postgresql:/me:hunter2@db/shop"))
    ***
    """
    if isinstance(address, Secret):
        return address
    if address and not _KNOWN.match(address):
        conceal(address, _HIDDEN)
        return Secret(address, _HIDDEN)
    shown = address
    for pattern in _PASSWORDS:
        for found in pattern.finditer(address):
            raw = found["password"]
            for password in (raw, unquote(raw), _ESCAPED.sub(r"\1", raw)):
                conceal(password, _HIDDEN)
        shown = pattern.sub(rf"\g<before>{_HIDDEN}\g<after>", shown)
    return address if shown == address else Secret(address, shown)


def guarded_secret(value: str) -> str:
    """Hide a text that is secret as a whole in the same way.

    >>> print(guarded_secret("hunter2"), [guarded_secret("")])
    *** ['']
    """
    if isinstance(value, Secret) or not value:
        return value
    conceal(value, _HIDDEN)
    return Secret(value, _HIDDEN)


def guarded_options(options: Mapping[str, Option]) -> Mapping[str, Option]:
    """Hide the secrets among the options of a client in the same way.

    >>> guarded_options({"kafka.sasl.password": "hunter2", "kafka.client.id": "shop"})
    {'kafka.sasl.password': '***', 'kafka.client.id': 'shop'}
    """
    return {name: _guarded_option(name, value) for name, value in options.items()}


def _guarded_option(name: str, value: Option) -> Option:
    if not isinstance(value, str) or isinstance(value, Secret) or not is_private(name):
        return value
    for secret in (value, *_IN_QUOTES.findall(value)):
        conceal(secret, _HIDDEN)
    return cast("Option", Secret(value, _HIDDEN))

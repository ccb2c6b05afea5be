"""Tokens and cookies: by which a request shows that it may look, or also operate."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from http.cookies import CookieError, SimpleCookie

_LENGTH = 32
_SEVEN_DAYS_S = 7 * 24 * 3600


class Role(StrEnum):
    """What a visitor may do."""

    LOOK = "look"
    OPERATE = "operate"
    """Look, and act: retry and silence alerts."""


@dataclass(frozen=True, slots=True)
class AccessKeys:
    """The tokens of a console, and the cookies that stand for them once a page is open.

    Cookies are computed from the token: they stay good when a console with a fixed token restarts.
    """

    operate: str = field(repr=False)
    """The token that `millstream console` prints."""
    port: int = 0
    """Cookies of one host are sent to all its ports, so that their name has the port."""

    @property
    def look(self) -> str:
        """The token of a link that may be shared for looking only."""
        return self._derived("look")

    @property
    def cookie_name(self) -> str:
        """The name of the cookie."""
        return f"millstream-{self.port}"

    def role_of_token(self, token: str) -> Role | None:
        """Return what a token allows; None if it is not one of this console."""
        known = {Role.OPERATE: self.operate, Role.LOOK: self.look}
        return _matching(token, known)

    def role_of_cookies(self, header: str) -> Role | None:
        """Return what the cookies of a request allow."""
        try:
            morsel = SimpleCookie(header).get(self.cookie_name)
        except CookieError:
            return None
        return _matching(morsel.value, {r: self._session(r) for r in Role}) if morsel else None

    def cookie_of(self, role: Role) -> str:
        """Return the header that sets the cookie of a role; no script can read it."""
        options = f"Path=/; Max-Age={_SEVEN_DAYS_S}; HttpOnly; SameSite=Strict"
        return f"{self.cookie_name}={self._session(role)}; {options}"

    def _session(self, role: Role) -> str:
        return self._derived(f"session {role}")

    def _derived(self, purpose: str) -> str:
        made = hmac.new(self.operate.encode(), purpose.encode(), hashlib.sha256)
        return made.hexdigest()[:_LENGTH]


def new_token() -> str:
    """Draw a token that nobody can guess."""
    return secrets.token_urlsafe(24)


def _matching(sent: str, known: dict[Role, str]) -> Role | None:
    found = None
    for role, value in known.items():
        # Headers are read as Latin-1, whatever was sent.
        if hmac.compare_digest(sent.encode("latin-1", "replace"), value.encode()):
            found = role
    return found

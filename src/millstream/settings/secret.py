"""Values from the environment: used as they are, shown only as `${NAME}`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Self, TypeVar, cast

from millstream.errors import conceal, fault, listed

if TYPE_CHECKING:
    from millstream.errors import Location

Value = TypeVar("Value")

_VARIABLE = re.compile(r"\$(\$\{)|(\$\{(?:([A-Za-z_]\w*)(?::-([^}]*))?\})?)")
"""`$${` for a plain `${`; else `${NAME}` or `${NAME:-default}`, or what looks like it."""

_PRIVATE = re.compile(
    r"secret|password|passphrase|token|access.?key|credential|jaas|keystore\.key|ssl\.key\.pem",
    re.IGNORECASE,
)
"""Names whose values Spark hides as well, and those of keys that clients take as text."""


class Secret(str):
    """A text that prints as it was written, such as `${KAFKA_PASSWORD}`."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, value: str, written: str) -> Self:
        """Show `written` instead of the value."""
        secret = super().__new__(cls, value)
        secret.written = written
        return secret

    def __repr__(self) -> str:
        return repr(self.written)

    def __str__(self) -> str:
        return self.written

    def __format__(self, spec: str) -> str:
        return format(self.written, spec)

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return (str.__str__(self), self.written)


def is_private(name: str) -> bool:
    """Return whether the value of a setting is a secret, by its name.

    >>> is_private("kafka.ssl.key.password"), is_private("kafka.client.id")
    (True, False)
    """
    return _PRIVATE.search(name) is not None


def revealed(value: Value) -> Value:
    """Return the real value of a secret; any other value as it is.

    >>> secret = Secret("hunter2", "${PASSWORD}")
    >>> str(secret), revealed(secret), revealed(3)
    ('${PASSWORD}', 'hunter2', 3)
    """
    return cast("Value", str.__str__(value)) if isinstance(value, Secret) else value


def parts_of(text: str) -> tuple[str, ...]:
    """Split a list at its commas; a part of a secret is a secret.

    >>> parts_of("a:1, b:2"), parts_of(Secret("a:1,b:2", "${SERVERS}"))
    (('a:1', 'b:2'), ('part 1 of ${SERVERS}', 'part 2 of ${SERVERS}'))
    """
    parts = [part.strip() for part in revealed(text).split(",") if part.strip()]
    if not isinstance(text, Secret):
        return tuple(parts)
    return tuple(Secret(part, f"part {n} of {text}") for n, part in enumerate(parts, 1))


def has_variable(text: str) -> bool:
    """Return whether a text has variables of the environment."""
    return any(not found[1] for found in _VARIABLE.finditer(text))


def expand(text: str, *, key: str, at: Location) -> str:
    """Fill in the variables of a text.

    Raises:
        VALUE_REFUSED: A `${` begins no variable.
        VARIABLE_MISSING: A variable is not set and has no default.
    """
    found = [match for match in _VARIABLE.finditer(text) if not match[1]]
    if any(match[3] is None for match in found):
        expected = "${NAME} or ${NAME:-default}; a plain ${ is written $${"
        raise fault("VALUE_REFUSED", at=at, key=key, got=repr(text), expected=expected)
    values = {match[2]: os.environ.get(match[3]) or match[4] for match in found}
    if missing := [match[3] for match in found if values[match[2]] is None]:
        raise fault("VARIABLE_MISSING", at=at, key=key, names=listed(missing))
    for written, value in values.items():
        conceal(value or "", written)
    expanded = _VARIABLE.sub(lambda match: match[1] or values[match[2]] or "", text)
    return Secret(expanded, text) if found else expanded

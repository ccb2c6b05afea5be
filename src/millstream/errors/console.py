"""Errors of requests to the console: who asks, and for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors.base import CommandError, closest

if TYPE_CHECKING:
    from collections.abc import Sequence


class ConsoleTokenError(CommandError):
    """The console is asked without its token, or with another."""

    code = "CONSOLE_TOKEN"

    def __init__(self, *, given: bool, variable: str) -> None:
        lack = "another token than the console's" if given else "no token"
        super().__init__(
            f"the request has {lack}",
            fix="send the header `Authorization: Bearer TOKEN`; the token stands after the # of "
            f"the address that `millstream console` prints, or is that of {variable}",
        )


class ConsoleHostError(CommandError):
    """The console is asked under a name that is not of this machine's loopback."""

    code = "CONSOLE_HOST"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"the console is asked as {host!r}; it answers on loopback only",
            fix="ask http://127.0.0.1 or http://localhost; from another machine, through a tunnel "
            "such as `ssh -L 7400:127.0.0.1:7400 HOST`",
        )


class ConsoleReadOnlyError(CommandError):
    """The console is asked to change something."""

    code = "CONSOLE_READ_ONLY"

    def __init__(self, method: str) -> None:
        super().__init__(
            f"the console does not answer {method}: it changes nothing", fix="ask with GET"
        )


class ConsoleAddressError(CommandError):
    """The console is asked for an address that it does not have."""

    code = "CONSOLE_ADDRESS"

    def __init__(self, path: str, *, known: Sequence[str]) -> None:
        super().__init__(
            f"the console has nothing at {path!r}",
            fix=f"{closest(path, known)}it answers {', '.join(known)}",
        )

"""Errors of the command line parser, as errors with a code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from millstream.errors import closest, fault, listed

if TYPE_CHECKING:
    from millstream.errors import MillstreamError

# Typer shows the class of its parser's errors only as the parent of this one.
_PARSER_ERROR = typer.BadParameter.__mro__[1]


class Commands(TyperGroup):
    """A group of commands that suggests the nearest one for a typo."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that was typed."""
        is_known = self.get_command(ctx, args[0]) is not None
        if not is_known and not args[0].startswith("-") and not ctx.resilient_parsing:
            name, known = args[0], self.commands
            raise fault(
                "UNKNOWN_COMMAND",
                program=ctx.command_path,
                name=name,
                nearest=closest(name, known),
                known=listed(known),
            )
        return super().resolve_command(ctx, args)


def parser_error(error: Exception) -> MillstreamError | None:
    """Return the error for what the parser refused; None if it was not the parser."""
    return _usage_error(error) if isinstance(error, _PARSER_ERROR) else None


def _usage_error(error: Any) -> MillstreamError:
    command = error.ctx.command_path if error.ctx else "millstream"
    if type(error).__name__ == "NoSuchOption":
        options = [word for param in error.ctx.command.params for word in param.opts]
        known = [word for word in (*options, "--help") if word.startswith("--")]
        return fault(
            "UNKNOWN_FLAG",
            command=command,
            flag=error.option_name,
            nearest=closest(error.option_name, known),
            known=listed(known),
        )
    return fault("USAGE", command=command, cause=error.format_message().rstrip("."))

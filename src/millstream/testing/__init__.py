"""The kit to test applications with: scripted arrival, virtual time, crash points, proofs.

Its fixtures `spark`, `home` and `stream` come with a pytest plugin that needs no configuration.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.crash import POINTS
    from millstream.testing.property import assert_prefix_consistent
    from millstream.testing.script import Script

__all__ = ["POINTS", "Script", "assert_prefix_consistent"]

_HOMES = {
    "POINTS": "millstream.crash",
    "Script": "millstream.testing.script",
    "assert_prefix_consistent": "millstream.testing.property",
}


def __getattr__(name: str) -> Any:
    # pytest loads the plugin of this package in every run; Spark is imported when it is needed.
    if name not in _HOMES:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)

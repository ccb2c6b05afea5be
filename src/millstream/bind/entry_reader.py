"""Entries of a profile become values; everything that is wrong with them is collected."""

from __future__ import annotations

import typing
from dataclasses import is_dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from millstream.bind.kind import SCALARS, Key, keys_of, name_of, written_kinds
from millstream.bind.run_keys import run_keys_of
from millstream.errors import MillstreamError, closest, fault, listed
from millstream.model.duration import parse_duration
from millstream.settings.profile import got, joined
from millstream.settings.secret import expand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.settings.profile import Names, ProfileEntry


class RefusedValueError(Exception):
    """Something was found wrong, and is among the faults."""


class EntryReader:
    """Reads entries, each by the type of its key."""

    def __init__(self) -> None:
        self.faults: list[MillstreamError] = []

    def refuse_missing(self, of: str, name: str, kind: type, there: set[str], at: Any) -> None:
        """Add a fault for each required key that is not there."""
        for key in keys_of(kind).values():
            if key.is_required and key.name not in there:
                self.faults.append(
                    fault(
                        "KEY_REQUIRED",
                        at=at,
                        of=of,
                        name=name,
                        kind=name_of(kind),
                        key=key.name,
                    )
                )

    def values(
        self, where: str, kind: type, entries: Mapping[Names, ProfileEntry]
    ) -> dict[str, Any]:
        """Read the keys of a connector, or of a table in it."""
        keys, values = keys_of(kind), dict[str, Any]()
        for name in dict.fromkeys(path[0] for path in entries):
            below = {path[1:]: entry for path, entry in entries.items() if path[0] == name}
            full, first = f"{where}.{name}", next(iter(below.values()))
            if name not in keys:
                known = list(keys)
                if kind in written_kinds():
                    known += ["kind", *run_keys_of(where.partition(".")[0])]
                self.faults.append(
                    fault(
                        "UNKNOWN_KEY",
                        at=first.at,
                        key=name,
                        table=where,
                        nearest=closest(name, known),
                        known=listed(known),
                    )
                )
                continue
            try:
                values[name] = self._value(full, keys[name], below)
            except RefusedValueError:
                continue
        return values

    def _value(self, where: str, key: Key, below: Mapping[Names, ProfileEntry]) -> Any:
        if is_dataclass(key.type):
            if () in below and below[()].value != {}:
                self.refuse_value(where, below[()], key.expected)
            part: Any = key.type
            return part(**self.values(where, part, {p: e for p, e in below.items() if p}))
        if key.is_table:
            return self._table(where, key, below)
        if () not in below:
            entry = next(iter(below.values()))
            self.refuse(
                fault("VALUE_REFUSED", at=entry.at, key=where, got="a table", expected=key.expected)
            )
        entry = below[()]
        if key.is_list or (key.scalar and isinstance(entry.value, list)):
            return self._texts(where, key, entry)
        return self._scalar(where, key, entry)

    def _table(self, where: str, key: Key, below: Mapping[Names, ProfileEntry]) -> dict[str, Any]:
        if () in below and below[()].value != {}:
            self.refuse_value(where, below[()], key.expected)
        table: dict[str, Any] = {}
        for name, entry in joined({p: e for p, e in below.items() if p}).items():
            value = entry.value
            if key.holds_lists and isinstance(value, list):
                table[name] = self._texts(f"{where}.{name}", key, entry)
                continue
            if not isinstance(value, str | int | bool | float):
                expected = "a text, a number or a boolean"
                self.refuse_value(f"{where}.{name}", entry, expected)
            table[name] = self.text(where, entry, value) if isinstance(value, str) else value
        return table

    def _texts(self, where: str, key: Key, entry: ProfileEntry) -> tuple[str, ...]:
        if not isinstance(entry.value, list) or not all(isinstance(v, str) for v in entry.value):
            self.refuse_value(where, entry, key.expected)
        return tuple(self.text(where, entry, text) for text in entry.value)

    def _scalar(self, where: str, key: Key, entry: ProfileEntry) -> Any:
        value, wanted = entry.value, key.scalar or key.type
        if typing.get_origin(wanted) is Literal:
            if value not in typing.get_args(wanted):
                self.refuse_value(where, entry, key.expected)
            return value
        if wanted is float and type(value) is int:
            return float(value)
        if wanted is timedelta and isinstance(value, str):
            try:
                return parse_duration(value)
            except ValueError:
                self.refuse_value(where, entry, key.expected)
        # A boolean is an integer to Python.
        if wanted not in SCALARS or type(value) is not wanted:
            self.refuse_value(where, entry, key.expected)
        return self.text(where, entry, value) if wanted is str else value

    def text(self, key: str, entry: ProfileEntry, text: str) -> str:
        """Read a text, with its variables replaced."""
        try:
            return expand(text, key=key, at=entry.at)
        except MillstreamError as error:
            self.faults.append(error)
            raise RefusedValueError from error

    def refuse_value(self, where: str, entry: ProfileEntry, expected: str) -> typing.NoReturn:
        """Refuse a value that is not what is expected."""
        found = got(entry.value)
        self.refuse(fault("VALUE_REFUSED", at=entry.at, key=where, got=found, expected=expected))

    def refuse(self, error: MillstreamError) -> typing.NoReturn:
        """Add a fault, and give up what was being read."""
        self.faults.append(error)
        raise RefusedValueError

"""How the fields of records become the columns of a schema."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from millstream.model.data_type import Atom, Decimal
from millstream.model.line_pattern import LinePattern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from millstream.model.schema import Schema

_PART = r"`(?:[^`]|``)+`|[^.`]+"
_PATH = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """What all sources of records understand, whatever their format."""

    rename: Mapping[str, str] = field(default_factory=dict)
    """Field of a record, or path to it -> the column that it becomes."""
    formats: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    """Column of times -> how they are written: one format, or several that are tried in order."""
    pattern: str = ""
    """Of lines of text: a regular expression with named groups, or the name of a known one."""
    parse: str | Callable[..., object] | None = None
    """A function that reads records, instead of a format; a text names it as `module:function`."""
    rest: str | None = None
    """The column that gets the fields that no other column reads."""
    lenient: bool | Sequence[str] = ()
    """The columns whose values may be written in another way than their types are, or True."""

    @property
    def record(self) -> RecordOptions:
        """Only these options, without what a connector adds to them."""
        names = (option.name for option in fields(RecordOptions))
        return RecordOptions(**{name: getattr(self, name) for name in names})

    @property
    def is_read_by_user(self) -> bool:
        """Whether a pattern or a function of the user's reads the records."""
        return bool(self.pattern) or self.parse is not None

    def formats_of(self, column: str) -> tuple[str, ...]:
        """Return the formats of a column; none if it is read by its type alone."""
        named = LinePattern(self.pattern).named
        known = {
            self.rename.get(f, f): text for f, text in (named.formats if named else {}).items()
        }
        formats = self.formats.get(column, known.get(column, ()))
        return (formats,) if isinstance(formats, str) else tuple(formats)

    def fields_of(self, schema: Schema) -> Schema:
        """Give each column the name that it has in a record."""
        if not self.rename:
            return schema
        names = {column: field_name(text) for text, column in self.rename.items()}
        return replace(
            schema,
            fields=tuple(replace(f, name=names.get(f.name, f.name)) for f in schema.fields),
        )

    def lenient_columns(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns that are lenient; if all may be, those without parts."""
        if self.lenient is not True:
            return tuple(self.lenient or ())
        return tuple(
            field.name
            for field in schema.fields
            if isinstance(field.type, Atom | Decimal) and field.name != self.rest
        )

    @property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """The names along each path, by the name of the field that it could be instead."""
        paths = ((text, path_of(text)) for text in self.rename)
        return {text: path for text, path in paths if len(path) > 1}


PLAIN = RecordOptions()
"""Each column is the field of its name."""


def path_of(text: str) -> tuple[str, ...]:
    """Return the names along a path; a text that is no path is one name.

    >>> path_of("a.b"), path_of("`a.b`.c"), path_of("a..b")
    (('a', 'b'), ('a.b', 'c'), ('a..b',))
    """
    if not _PATH.fullmatch(text):
        return (text,)
    return tuple(
        part[1:-1].replace("``", "`") if part.startswith("`") else part
        for part in re.findall(_PART, text)
    )


def field_name(text: str) -> str:
    """Return the name of a field; one in backticks is meant as it is.

    >>> field_name("a.b"), field_name("`a.b`")
    ('a.b', 'a.b')
    """
    path = path_of(text)
    return path[0] if len(path) == 1 else text

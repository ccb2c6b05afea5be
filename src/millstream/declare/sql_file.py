"""Datasets in files of SQL: the header says what one is, the query below what it holds."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from millstream.declare.dataset import built_alert, built_serve, built_table, connected_source
from millstream.declare.event_time import DEFAULT_NAME
from millstream.declare.header import Header, HeaderOption, read_header
from millstream.declare.header_value import (
    EXPECTED,
    UNKNOWN,
    default_of,
    defaults_of,
    flat_options,
    nested_options,
    options_of,
    read_value,
    several_texts,
)
from millstream.declare.options import AlertOptions, ServeOptions, SourceOptions, TableOptions
from millstream.declare.sql_function import SqlFunction, sql_inputs, sql_tokens
from millstream.errors import Location, MillstreamError, closest, fault, listed, relative
from millstream.model.dataset import Alert, Expectations, Serve, Source, Table, View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from millstream.model.dataset import Dataset

    Kinded = Mapping[str, Callable[..., Any]]

_KINDS = ("source", "table", "serve", "alert")
_NAMED_TIME = "event_time."


@dataclass(frozen=True, slots=True)
class SqlFile:
    """What became of a file."""

    name: str
    """Of the dataset, whether it could be made or not."""
    dataset: Dataset | None
    faults: tuple[MillstreamError, ...]


@dataclass(frozen=True, slots=True)
class Kinds:
    """What the header of a file may name, by its name there."""

    sources: Kinded
    sinks: Kinded
    destinations: Kinded


def files_of(folder: Path) -> tuple[Path, ...]:
    """Find the files of SQL that lie in a folder."""
    return tuple(sorted(f for f in folder.glob("*.sql") if f.is_file() and f.name[0] != "."))


def read_file(file: Path, kinds: Kinds) -> SqlFile:
    """Make the dataset of a file, and find everything that is wrong with it.

    Args:
        file: Named after its dataset, unless its header has another name.
        kinds: What a source may read, and a serve or an alert may lead to.
    """
    place = partial(Location, relative(str(file)))
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        unreadable = fault("SQL_REFUSED", at=place(1), dataset=file.stem, why=str(error))
        return SqlFile(file.stem, None, (unreadable,))
    return _Draft(file.stem, text, place, kinds).finished()


class _Draft:
    """A file on its way to a dataset; whatever is wrong with it is collected."""

    def __init__(
        self,
        stem: str,
        text: str,
        place: Callable[[int], Location],
        kinds: Kinds,
    ) -> None:
        self._text, self._place, self._kinds = text, place, kinds
        header = read_header(text)
        self._name = next((o.text for o in header.options if o.name == "name" and o.text), stem)
        self._faults: list[MillstreamError] = [
            fault("HEADER_LINE", at=place(number), dataset=self._name, line=line)
            for number, line in header.strays
        ]
        self._options = self._once_each(header.options)
        self._query_line = _query_line(text, header)
        lines = {_part(option): option.line for option in self._options}
        first = place(self._query_line or header.first_line)
        self._at = Location(first.file, first.line, lines=lines)

    def finished(self) -> SqlFile:
        dataset: Dataset | None = None
        try:
            dataset = self._dataset()
        except MillstreamError as error:
            self._faults.append(error)
        return SqlFile(self._name, dataset, tuple(self._faults))

    def _dataset(self) -> Dataset | None:
        kind = next((option for option in self._options if option.name in _KINDS), None)
        if kind is None:
            return self._view()
        self._options.remove(kind)
        makers = {"source": self._source, "serve": self._serve, "alert": self._alert}
        return makers.get(kind.name, self._table)(kind.text.lower())

    def _source(self, reads: str) -> Source | None:
        if self._query_line:
            self._faults.append(
                fault("SOURCE_QUERY", at=self._place(self._query_line), source=self._name)
            )
        own = options_of(SourceOptions, Source)
        own |= {o.name: None for o in self._options if o.name.startswith(_NAMED_TIME)}
        options, connector = self._connected("source", reads, self._kinds.sources, own)
        named = [option for option in options if option.startswith(_NAMED_TIME)]
        times = {o.removeprefix(_NAMED_TIME): options.pop(o) for o in named}
        if times and "event_time" in options:
            times[DEFAULT_NAME] = options["event_time"]
        options |= {"event_time": times} if times else {}
        if connector is None:
            return None
        return connected_source(self._name, connector, self._at, options)

    def _serve(self, store: str) -> Serve | None:
        own = options_of(ServeOptions, Serve)
        del own["to"]
        options, sink = self._connected("serve", store, self._kinds.sinks, own)
        build, at = self._query()
        whole = cast("ServeOptions", options | {"to": sink})
        return sink and built_serve(self._name, build, build.reads, at, whole)

    def _alert(self, destination: str) -> Alert | None:
        own = options_of(AlertOptions, Alert)
        del own["to"]
        options, to = self._connected("alert", destination, self._kinds.destinations, own)
        build, at = self._query()
        whole = cast("AlertOptions", options | {"to": to})
        return to and built_alert(self._name, build, build.reads, at, whole)

    def _connected(
        self, kind: str, chosen: str, known: Kinded, own: dict[str, object]
    ) -> tuple[dict[str, Any], Any]:
        """Read the options of a dataset, and make what it reads or leads to; None if it lacks any.

        Raises:
            OPTION_REFUSED: There is nothing of that kind.
        """
        if chosen not in known:
            allowed = tuple(known)
            raise fault(
                "OPTION_REFUSED",
                at=self._at,
                dataset=self._name,
                option=kind,
                value=chosen,
                nearest=closest(chosen, allowed),
                allowed=", ".join(allowed),
            )
        make = known[chosen]
        # Where the dataset has an option of that name too, the connector's goes by its full name.
        theirs = {f"{chosen}.{o}" if o in own else o: d for o, d in flat_options(make).items()}
        values = self._values(own | theirs)
        options = {option: values.pop(option) for option in own if option in values}
        options.pop("name", None)
        arguments = nested_options(
            {o.removeprefix(f"{chosen}."): v for o, v in values.items()}, make
        )
        if "formats" in arguments:
            arguments["formats"] = {c: several_texts(t) for c, t in arguments["formats"].items()}
        lacks = self._lacks(arguments, kind, chosen, make)
        return options, None if lacks else make(**arguments)

    def _lacks(self, arguments: Mapping[str, Any], kind: str, chosen: str, make: Any) -> bool:
        """Return whether an option that the connector requires is missing."""
        needed = [option for option, default in defaults_of(make).items() if default is MISSING]
        missing = [option for option in needed if option not in arguments]
        refused = {option.name.removeprefix(f"{chosen}.") for option in self._options}
        self._faults += (
            fault(
                "OPTION_MISSING",
                at=self._at.of(kind),
                kind=kind,
                dataset=self._name,
                connector=chosen,
                option=option,
            )
            for option in missing
            if option not in refused
        )
        return bool(missing)

    def _table(self, mode: str) -> Table:
        known = options_of(TableOptions, Table)
        del known["mode"]
        options = {"mode": mode or "append", **self._values(known)}
        build, at = self._query()
        return built_table(self._name, build, build.reads, at, cast("TableOptions", options))

    def _view(self) -> View:
        known = options_of(TableOptions, Table).keys() - {"name"}
        for option in [o for o in self._options if o.name in known]:
            self._options.remove(option)
            at = self._place(option.line)
            self._faults.append(fault("NOT_A_TABLE", at=at, view=self._name, option=option.name))
        self._values(dict.fromkeys(("name", *_KINDS)))
        build, at = self._query()
        return View(self._name, build.reads, build, at)

    def _query(self) -> tuple[SqlFunction, Location]:
        """Read the query; return it with the location of the dataset and of the names it reads."""
        reads = sql_inputs(self._text, dataset=self._name, place=self._place)
        lines = dict(self._at.lines)
        lines.update({("from", name): line for name, line in reads.items()})
        at = replace(self._at, lines=lines)
        return SqlFunction(self._text, tuple(reads), self._place), at

    def _values(self, known: Mapping[str, object]) -> dict[str, Any]:
        """Read the options that are left, each as the kind of value it has by default."""
        values: dict[str, Any] = {}
        for option in self._options:
            name, at = option.name, self._place(option.line)
            default = default_of(name, known)
            if default is UNKNOWN:
                names = [f"{o}.…" if isinstance(d, dict) else o for o, d in known.items()]
                unknown = fault(
                    "UNKNOWN_OPTION",
                    at=at,
                    dataset=self._name,
                    option=name,
                    nearest=closest(name, names),
                    known=listed(names),
                )
                self._faults.append(unknown)
            elif isinstance(default, Expectations) != (option.rule is not None):
                shown = self._text.split("\n")[option.line - 1].strip()
                self._faults.append(fault("HEADER_LINE", at=at, dataset=self._name, line=shown))
            elif option.rule is not None:
                values.setdefault(name, {})[option.rule] = option.value
            else:
                self._read_value(option, default, values)
        return values

    def _read_value(self, option: HeaderOption, default: object, values: dict[str, Any]) -> None:
        try:
            values[option.name] = read_value(option.text, default)
        except (ValueError, KeyError):
            self._faults.append(
                fault(
                    "OPTION_VALUE",
                    at=self._place(option.line),
                    dataset=self._name,
                    option=option.name,
                    value=option.text,
                    expected=EXPECTED.get(type(default), "a value"),
                )
            )

    def _once_each(self, options: Sequence[HeaderOption]) -> list[HeaderOption]:
        first: dict[tuple[str, ...], HeaderOption] = {}
        for option in options:
            if (kept := first.setdefault(_part(option), option)) is not option:
                self._faults.append(
                    fault(
                        "OPTION_TWICE",
                        at=self._place(option.line),
                        dataset=self._name,
                        option=" ".join(filter(None, (option.name, option.rule))),
                        first=self._place(kept.line),
                    )
                )
        return list(first.values())


def _part(option: HeaderOption) -> tuple[str, ...]:
    """Name a line of the header as an error about it asks for it."""
    name = "mode" if option.name == "table" else option.name
    return (name,) if option.rule is None else (name, option.rule)


def _query_line(text: str, header: Header) -> int | None:
    """Find the first line of the query, if there is one."""
    from sqlglot.errors import SqlglotError

    try:
        tokens = sql_tokens(text)
    except SqlglotError:
        return header.first_line
    return tokens[0].line if tokens else None

"""Columns of times that are written in formats of their own: numbers since 1970, or patterns."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal as Number
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.landing.decode.column import MICROS, NUMBER, UNFIT, UnfitError, arrow_type, ways
from millstream.landing.decode.time_pattern import TimePattern
from millstream.model.data_type import Atom
from millstream.model.duration import UNIX_EPOCH
from millstream.model.time_format import EPOCHS, ISO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.landing.decode.column import Build
    from millstream.model.data_type import Type
    from millstream.model.record import RecordOptions
    from millstream.model.schema import Schema

_INTEGER = r"^-?[0-9]{1,18}$"
_DAY_US = 86_400_000_000
_MOST_DIGITS = 24
_SHOWN = re.compile(r"epoch_.*|iso")


class TimeFormat(Protocol):
    """One way to write a time."""

    def one(self, value: Any) -> int:
        """Read a value as microseconds since 1970, or raise one of `UNFIT`."""

    def many(self, values: Sequence[Any]) -> tuple[Any, Any]:
        """Read values; return microseconds, and whether each could be read together with others.

        What could not may still be read alone.
        """


class Epoch:
    """Numbers since 1970, as numbers or as text; what is finer than a microsecond is cut off."""

    def __init__(self, power: int) -> None:
        self._power = power

    def one(self, value: Any) -> int:
        """Read a number."""
        text = repr(value) if isinstance(value, float) else str(value)
        if isinstance(value, bool) or not NUMBER.fullmatch(text):
            raise ValueError(value)
        exact = Number(text)
        # The greatest numbers would take long to become whole.
        if exact and exact.adjusted() > _MOST_DIGITS:
            raise OverflowError(value)
        micros = exact.scaleb(self._power, Context(prec=len(text), Emax=MAX_EMAX, Emin=MIN_EMIN))
        return int(micros.to_integral_value(ROUND_FLOOR))

    def many(self, values: Sequence[Any]) -> tuple[Any, Any]:
        """Read whole numbers, and those with as many decimals as a microsecond has."""
        numbers, right = _numbers(values)
        if numbers.dtype == np.float64:
            micros = np.rint(numbers * 10.0**self._power)
            # A number is as it was written exactly if it is the one next to that many decimals.
            right = right & (micros / 10.0**self._power == numbers) & (np.abs(micros) < 2**53)
            return np.where(right, micros, 0).astype(np.int64), right
        if self._power < 0:
            return numbers // 10**-self._power, right
        most = MICROS[1] // 10**self._power
        right = right & (numbers >= -most) & (numbers <= most)
        return np.where(right, numbers, 0) * 10**self._power, right


class Iso:
    """Text as it is read without a format."""

    def __init__(self, kind: Atom) -> None:
        self._whole, self._one = ways(kind)

    def one(self, value: Any) -> int:
        """Read a text."""
        if not isinstance(value, str):
            raise TypeError(value)
        found: Any = self._one(value)
        is_day = not isinstance(found, datetime)
        moment = datetime(found.year, found.month, found.day) if is_day else found  # noqa: DTZ001
        return (moment.replace(tzinfo=UTC) - UNIX_EPOCH) // timedelta(microseconds=1)

    def many(self, values: Sequence[Any]) -> tuple[Any, Any]:
        """Read texts of one kind."""
        try:
            found: Any = self._whole(values)
        except UNFIT:
            return np.zeros(len(values), np.int64), np.zeros(len(values), bool)
        micros = found.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
        return micros, np.ones(len(values), bool)


class TimeColumn:
    """Reads the values of a column by formats, each value by the first that fits."""

    def __init__(self, kind: Type, formats: Sequence[str]) -> None:
        assert isinstance(kind, Atom)
        self._kind, self._formats = kind, [time_format(text, kind) for text in formats]
        self.takes_numbers = not EPOCHS.keys().isdisjoint(formats)
        self._shown = " or ".join(t if _SHOWN.fullmatch(t) else repr(t) for t in formats)

    @staticmethod
    def by_field(fields: Schema, columns: Schema, record: RecordOptions) -> dict[str, TimeColumn]:
        """Return those of a record that has formats, by the names of its fields."""
        pairs = zip(fields.fields, columns.fields, strict=True)
        formats = {field: record.formats_of(column.name) for field, column in pairs}
        return {f.name: TimeColumn(f.type, texts) for f, texts in formats.items() if texts}

    @property
    def build(self) -> Build:
        """The function that makes a column, or raises `UnfitError`."""
        return self._build

    def fault(self, value: Any, at: str) -> str | None:
        """Say that no format fits a value, if none does."""
        if value is None or any(_alone(form, value) is not None for form in self._formats):
            return None
        got = repr(value) if not isinstance(value, str) else repr(value[:40])
        return f"expected {self._kind.name.lower()} as {self._shown}, got {got}, {at}"

    def _build(self, values: Sequence[Any]) -> Any:
        there = [value for value in values if value is not None]
        micros, unfit = _read(self._formats[0], there)
        for form in self._formats[1:]:
            if len(unfit):
                found, rest = _read(form, [there[i] for i in unfit])
                micros[unfit], unfit = found, unfit[rest]
        if len(unfit):
            raise UnfitError(_rows(values, unfit.tolist()))
        if len(there) == len(values):
            return self._typed(pa.array(micros))
        nulls = np.array([value is None for value in values])
        whole = np.zeros(len(values), np.int64)
        whole[~nulls] = micros
        return self._typed(pa.array(whole, mask=nulls))

    def _typed(self, micros: Any) -> Any:
        if self._kind is Atom.DATE:
            days = pc.divide(pc.subtract(micros, pa.scalar(MICROS[0])), pa.scalar(_DAY_US))
            return pc.add(days, pa.scalar(MICROS[0] // _DAY_US)).cast(pa.int32()).cast(pa.date32())
        return micros.cast(arrow_type(self._kind))


def read_times(kind: Atom, formats: Sequence[str], values: Sequence[Any]) -> list[Any]:
    """Read values by some formats; return None for each that fits none."""
    column = TimeColumn(kind, formats)
    try:
        found: list[Any] = column.build(values).to_pylist()
    except UnfitError as error:
        unfit = {*error.rows}
        return read_times(kind, formats, [None if i in unfit else v for i, v in enumerate(values)])
    return found


@cache
def time_format(text: str, kind: Atom) -> TimeFormat:
    """Return the format that a text names.

    Raises:
        ValueError: It names none.
    """
    if text == ISO:
        return Iso(kind)
    return Epoch(EPOCHS[text]) if text in EPOCHS else TimePattern(text)


def _numbers(values: Sequence[Any]) -> tuple[Any, Any]:
    """Read numbers or texts of whole numbers; a mask says which are."""
    try:
        column: Any = pa.array(values)
    except UNFIT:
        column = pa.nulls(len(values))
    if pa.types.is_int64(column.type) or pa.types.is_float64(column.type):
        return column.to_numpy(), np.ones(len(values), bool)
    if not pa.types.is_string(column.type):
        return np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    whole: Any = pc.match_substring_regex(column, _INTEGER)
    numbers = pc.if_else(whole, column, pa.scalar("0")).cast(pa.int64())
    return numbers.to_numpy(), whole.to_numpy(zero_copy_only=False)


def _read(form: TimeFormat, values: Sequence[Any]) -> tuple[Any, Any]:
    """Read values by one format; return microseconds, and the places of those that it refuses."""
    micros, right = form.many(values)
    right = right & (micros >= MICROS[0]) & (micros <= MICROS[1])
    unfit = []
    for i in np.flatnonzero(~right).tolist():
        found = _alone(form, values[i])
        if found is None:
            unfit.append(i)
        else:
            micros[i] = found
    return micros, np.array(unfit, np.int64)


def _alone(form: TimeFormat, value: Any) -> int | None:
    try:
        found = form.one(value)
    except UNFIT:
        return None
    return found if MICROS[0] <= found <= MICROS[1] else None


def _rows(values: Sequence[Any], unfit: Sequence[int]) -> list[int]:
    """Return where values are that are counted without nulls."""
    places = [i for i, value in enumerate(values) if value is not None]
    return [places[i] for i in unfit]

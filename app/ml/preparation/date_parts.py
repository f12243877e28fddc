"""Parts of a date as columns of numbers: year, month, weekday, hour, elapsed days, and places on their circles.

A date is seconds since 1970 in UTC, in the Gregorian calendar. Months count from 1, hours from 0, and weekdays from
Monday, which is 0. Elapsed days are those since the start of 1970, with a fraction for the time of day. The sine and
cosine of month, weekday and hour are a point on a circle, where December is as near to January as June to July. All
parts of a missing date are missing.

The numbers of a raw matrix are 64-bit floats, which distinguish microseconds up to the year 2242.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.errors import InvalidData
from app.base.faults import Fault, place
from app.base.wire import Body
from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.columns import ColumnKind
from app.ml.preparation.arrow_columns import Raw
from app.ml.preparation.request import DatePart, Dates

AT = "/preprocessing/dates"
DAY = 86_400.0
MAX_SECONDS = 1e13
"""Seconds from 1970 that are no date: about 300,000 years, beyond all that a table holds."""
LABELS: Mapping[DatePart, tuple[str, ...]] = {
    "year": ("year",),
    "month": ("month",),
    "weekday": ("weekday",),
    "hour": ("hour",),
    "elapsed_days": ("elapsed days",),
    "cyclic_month": ("month sine", "month cosine"),
    "cyclic_weekday": ("weekday sine", "weekday cosine"),
    "cyclic_hour": ("hour sine", "hour cosine"),
}
"""Names of the columns of each part, after that of the date."""
TIMED: frozenset[DatePart] = frozenset({"hour", "cyclic_hour"})
"""Parts of the time of day."""
PERIODS: Mapping[DatePart, float] = {
    "month": 366 * DAY,
    "cyclic_month": 366 * DAY,
    "weekday": 7 * DAY,
    "cyclic_weekday": 7 * DAY,
    "hour": DAY,
    "cyclic_hour": DAY,
}
"""Seconds after which the values of a part come again; the others never come again."""


class DateParts(Body):
    """Parts of one date, which stand for it in the matrix."""

    date: str
    parts: tuple[DatePart, ...] = Field(min_length=1)

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.date,)

    @cached_property
    def names(self) -> list[str]:
        return part_names(self.date, self.parts)

    @property
    def plain_names(self) -> list[str]:
        return self.names

    @property
    def period(self) -> float:
        """Seconds after which the values of all parts come again; infinite where they never do."""
        return max(PERIODS.get(part, math.inf) for part in self.parts)

    def values(self, x: Matrix) -> Matrix:
        """(n, f) of seconds (n, 1)."""
        seconds = x[:, 0]
        is_near = np.abs(seconds) < MAX_SECONDS  # which NaN is not
        fields = _fields(np.where(is_near, seconds, 0.0))
        columns = np.column_stack([column for part in self.parts for column in fields[part]])
        columns[~is_near] = np.nan
        return columns


def part_names(date: str, parts: Sequence[DatePart]) -> list[str]:
    """Names of the columns that parts of a date make.

    >>> part_names("sold_at", ["month", "cyclic_weekday"])
    ['sold_at: month', 'sold_at: weekday sine', 'sold_at: weekday cosine']
    """
    return [f"{date}: {label}" for part in parts for label in LABELS[part]]


def learned_parts(how: Dates, raw: Raw) -> Iterator[DateParts]:
    """Parts of the dates of a table, in its order; where no row has a time of day, those of it are left out.

    Raises InvalidData where such a part is requested for this very date, or no part is left.
    """
    requested = by_date(how, {column.name: column.kind for column in raw.columns})
    for index, column in enumerate(raw.columns):
        parts = requested.get(column.name, ())
        learnable = [part for part in parts if part not in TIMED or _timed(raw.values[:, index])]
        if len(learnable) < len(parts) and (isinstance(how, Mapping) or not learnable):
            lead = f"The dates of {column.name!r} have no time of day"
            where = place("preprocessing", "dates", column.name) if isinstance(how, Mapping) else AT
            fault = Fault(
                where, f"{lead}: leave out {' and '.join(sorted(set(parts) - set(learnable)))}.", "no_time_of_day"
            )
            raise InvalidData(faults=[fault])
        if learnable:
            yield DateParts(date=column.name, parts=tuple(learnable))


def by_date(how: Dates, kinds: Mapping[str, str]) -> Mapping[str, Sequence[DatePart]]:
    """Parts by column. kinds: that of each column to learn from."""
    if isinstance(how, Mapping):
        return how
    return {name: how for name, kind in kinds.items() if how and kind == ColumnKind.DATETIME}


def _timed(seconds: Vector) -> bool:
    """True if some row of the table is not at midnight in UTC."""
    return bool((seconds[~np.isnan(seconds)] % DAY != 0).any())


def _fields(seconds: Vector) -> Mapping[DatePart, Sequence[Vector]]:
    """Columns of every part of seconds (n,)."""
    whole = np.floor(seconds).astype(np.int64)
    days, second = np.divmod(whole, int(DAY))
    year, month = np.divmod(days.astype("M8[D]").astype("M8[M]").astype(np.int64), 12)
    weekday, hour = (days + 3) % 7, second // 3600  # 1970 began on a Thursday
    numbers = (field.astype(np.float64) for field in (year + 1970, month + 1, weekday, hour))
    alone: tuple[DatePart, ...] = ("year", "month", "weekday", "hour")
    return {
        **{part: (values,) for part, values in zip(alone, numbers, strict=True)},
        "elapsed_days": (seconds / DAY,),
        "cyclic_month": _circle(month, 12),
        "cyclic_weekday": _circle(weekday, 7),
        "cyclic_hour": _circle(hour, 24),
    }


def _circle(steps: NDArray[np.int64], size: int) -> tuple[Vector, Vector]:
    """Sine and cosine, (n,) each, of whole steps from the first of so many."""
    sine, cosine = circle_values(size)
    return sine[steps], cosine[steps]


def circle_values(size: int) -> tuple[Vector, Vector]:
    """Sine and cosine, (size,) each, of every step round a circle."""
    cosine = np.array([_cosine(step, size) for step in range(size)])
    sine = np.array([_cosine(step - size / 4, size) for step in range(size)])
    return sine, cosine


def _cosine(step: float, size: int) -> float:
    """Exact on the axes, and the same on either side of one: else a column of two months might seem to vary."""
    step = min(step % size, -step % size)
    return -_cosine(size / 2 - step, size) if 4 * step > size else math.sin(2 * math.pi * (size / 4 - step) / size)

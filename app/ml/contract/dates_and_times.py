"""Dates and times in text, by the order of day, month and year.

A date is numbers with `.`, `/` or `-` between them; the year has four digits, or two where it comes last (69 to 99 are
the years 1969 to 1999). Eight digits alone are a date that begins with the year. The month may be a name or its
abbreviation in one of the languages of `month_names`. A month of a year (1949-01, 09/2024, Jan 1974), a quarter
(2024-Q3) and an ISO week (2024-W05) are their first day. A time of day may follow a date: hours and minutes, seconds
with a fraction, AM or PM, and an offset from UTC or a zone of `_ZONES`. A time without an offset is UTC.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.ml.contract.cell_shapes import group_by_shape, numbers_in, part_of
from app.ml.contract.month_names import MONTHS

FEW_CELLS = 200
"""Cells up to which Python's patterns, which are prepared once, are quicker than Arrow's."""
TIME = pa.timestamp("us", "UTC")


DateOrder: TypeAlias = Literal["YMD", "DMY", "MDY"]
"""The order of day, month and year in a date."""
_PARTS = {
    "Y": r"(?P<year>[0-9]{4})",
    "y": r"(?P<year>[0-9]{4}|[0-9]{2})",
    "M": r"(?P<month>[0-9]{1,2})",
    "D": r"(?P<day>[0-9]{1,2})",
}
_ZONES = {
    "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "CET": 1, "CEST": 2,
}  # fmt: skip
"""Hours from UTC of the zones that RFC 5322 names, and of Central European Time."""
_CLOCK = (
    r"(?:(?:T|,? +)(?P<hour>[0-9]{1,2})"
    r"(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,6})[0-9]{0,6})?)?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
    rf"(?: ?(?:Z|UTC|GMT)| ?(?P<zone>{'|'.join(_ZONES)})"
    r"| ?(?P<offset>[+-])(?P<hours>[0-9]{2})(?::?(?P<minutes>[0-9]{2}))?)?)?$"
)
_WRITTEN: dict[DateOrder, str] = {"YMD": "YMD", "DMY": "DMy", "MDY": "MDy"}
_PATTERNS = {order: "^" + "[./-]".join(_PARTS[part] for part in parts) + _CLOCK for order, parts in _WRITTEN.items()}
_NAME = r"(?P<name>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\.?"
_NAMED = (
    rf"(?i)^{_PARTS['D']}(?:st|nd|rd|th)?[ ./-]*(?:of |de |di |d')?{_NAME},?(?: de| del|[ ./-])*{_PARTS['y']}{_CLOCK}",
    rf"(?i)^{_NAME}[ ./-]*{_PARTS['D']}(?:st|nd|rd|th)?(?:, *|[ ./-]+){_PARTS['y']}{_CLOCK}",
    rf"(?i)^{_PARTS['Y']}[ ./-]*{_NAME}[ ./-]*{_PARTS['D']}{_CLOCK}",
    rf"(?i)^{_NAME}[ ,./-]*{_PARTS['Y']}$",
    rf"(?i)^{_NAME}[-']{_PARTS['y']}$",
)
"""Dates with the name of a month, in any order: it is the same in all."""
_PERIODS = (
    r"^(?P<year>[0-9]{4})[-/](?P<month>[0-9]{1,2})$",
    r"^(?P<month>[0-9]{1,2})[-/](?P<year>[0-9]{4})$",
    r"^(?P<year>[0-9]{4})[ -]?[Qq](?P<quarter>[1-4])$",
    r"^[Qq](?P<quarter>[1-4])[ /-]?(?P<year>[0-9]{4})$",
    r"^(?P<year>[0-9]{4})-?[Ww](?P<week>[0-9]{2})(?:-?(?P<weekday>[1-7]))?$",
)
"""Months, quarters and weeks of a year."""
_OTHERS = (*_NAMED, *_PERIODS)
ZONE = "(?:Z|UTC|GMT|" + "|".join(_ZONES) + ")"
_SOME_DIGITS = re.compile(r"\[1-[0-9]\]")
"""Part of a pattern: in shapes it is any digit, and `_stamps` checks the bounds."""
CENTURY_DIGITS = 2
"""Digits of a year without its century."""
DATE_PATTERNS = (*_PATTERNS.values(), *_OTHERS)

Numbers = NDArray[np.int64]


def moments(cells: pa.Array, order: DateOrder) -> pa.Array:
    """Cells without spaces around them as times; null where one is null or no time in this order."""
    if order == "YMD":
        cells = pc.replace_substring_regex(cells, "^([0-9]{4})([0-9]{2})([0-9]{2})$", r"\1-\2-\3")
    stamps, sound = np.zeros(len(cells), np.int64), np.zeros(len(cells), np.bool_)
    for group in group_by_shape(cells):
        for pattern in (_PATTERNS[order], *_OTHERS):
            match = compiled(_SOME_DIGITS.sub("[0-9]", pattern)).match(group.shape)
            if match is None or match.end() < len(group.shape):
                continue
            read, is_time = _stamps(_Parts(group.letters, match))
            first = is_time & ~sound[group.rows]
            stamps[group.rows[first]], sound[group.rows[first]] = read[first], True
    return pa.array(stamps, mask=~sound).cast(TIME) if sound.any() else pa.nulls(len(cells), TIME)


def may_match(cells: pa.Array, pattern: str) -> bool:
    """False if no cell has the pattern. Many cells are not looked at: for these Arrow is quicker."""
    if len(cells) > FEW_CELLS:
        return True
    search = compiled(pattern).search
    return any(cell is not None and search(cell) for cell in cells.to_pylist())


@lru_cache(256)
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _stamps(parts: "_Parts") -> tuple[Numbers, NDArray[np.bool_]]:
    """Microseconds since 1970 of cells of one shape, and which of them are times."""
    year, month, day = parts.numbers("year"), parts.months(), parts.numbers("day", absent=1)
    if len(parts.text("year")) == CENTURY_DIGITS:
        year = _century(year)
    hour, minute, second = (parts.numbers(name) for name in ("hour", "minute", "second"))
    hours, minutes, fraction = parts.numbers("hours"), parts.numbers("minutes"), parts.numbers("fraction", digits=6)
    quarter, half = parts.numbers("quarter", absent=1), parts.text("half").upper()
    sound = (quarter >= 1) & (quarter <= 4)
    if half:
        sound &= (hour >= 1) & (hour <= 12)
        hour = hour % 12 + 12 * int(half == "P")
    months = ((np.clip(year, 0, 9999) - 1970) * 12 + np.clip(month, 1, 12) - 1).astype("M8[M]")
    days = cast("NDArray[np.datetime64]", months.astype("M8[D]") + (day - 1))
    sound &= (month >= 1) & (month <= 12) & (day >= 1) & (days.astype("M8[M]") == months)
    if parts.text("week"):
        weekday = parts.numbers("weekday", absent=1)
        days, in_year = _days_of_weeks(months.astype("M8[D]"), parts.numbers("week"), weekday)
        sound &= in_year & (weekday >= 1) & (weekday <= 7)
    sound &= (hour < 24) & (minute < 60) & (second < 60) & (hours < 24) & (minutes < 60)
    sign = -1 if parts.text("offset") == "-" else 1
    east = sign * (hours * 60 + minutes) + 60 * _ZONES.get(parts.text("zone").upper(), 0)
    seconds = (hour * 60 + minute - east) * 60 + second
    return (days.astype(np.int64) * 86_400 + seconds) * 1_000_000 + fraction, sound


class _Parts(NamedTuple):
    """The parts of dates of one shape."""

    letters: NDArray[np.uint8]
    match: "re.Match[str]"
    """The match of their shape."""

    def text(self, name: str) -> str:
        """A part of the shape, empty where it is not written."""
        return (self.match[name] or "") if name in self.match.re.groupindex else ""

    def numbers(self, name: str, *, absent: int = 0, digits: int = 1) -> Numbers:
        """A part as whole numbers, with zeros behind it up to so many digits; `absent` where it is not written."""
        part = part_of(self.match, name)
        if part is None:
            return np.full(len(self.letters), absent * 10 ** (digits - 1), np.int64)
        scale: int = 10 ** max(0, digits - (part.end - part.start))
        return numbers_in(self.letters, part) * scale

    def months(self) -> Numbers:
        """The month from 1: by its number, its name or the quarter; else the first."""
        if self.text("name"):
            return np.full(len(self.letters), MONTHS.get(self.text("name").lower(), 0), np.int64)
        if self.text("quarter"):
            return 3 * self.numbers("quarter", absent=1) - 2
        return self.numbers("month", absent=1)


def _days_of_weeks(
    years: NDArray[np.datetime64], week: Numbers, weekday: Numbers
) -> tuple[NDArray[np.datetime64], NDArray[np.bool_]]:
    """Days of ISO 8601 weeks of years, given by their first day, and whether the year has the week."""
    fourth = years + 3  # of January: always in the first week
    monday = fourth - (fourth.astype(np.int64) + 3) % 7
    days = monday + 7 * (week - 1) + (weekday - 1)
    thursday = monday + 7 * (week - 1) + 3
    return days, (week >= 1) & (thursday.astype("M8[Y]") == years.astype("M8[Y]"))


def are_dates(numbers: pa.Array) -> bool:
    """True if whole numbers without nulls may be dates of the years 1900 to 2099, such as 20240131."""
    if not len(numbers):
        return True
    low, high = (end.as_py() for end in pc.min_max(numbers).values())
    near = 19000101 <= low <= high <= 20991231
    return bool(near and moments(pc.unique(numbers).cast(pa.string()), "YMD").null_count == 0)


def _century(year: Numbers) -> Numbers:
    years: Numbers = np.where(year < 69, year + 2000, year + 1900)
    return years

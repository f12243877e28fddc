"""Dates and times in text, by the order of day, month and year.

A date is numbers with `.`, `/` or `-` between them; the year has four digits, or two where it comes last (69 to 99 are
the years 1969 to 1999). Eight digits alone are a date that begins with the year. A time of day may follow the marks:
hours and minutes, seconds with a fraction, AM or PM, and an offset from UTC. A time without an offset is UTC.
"""

from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

TIME = pa.timestamp("us", "UTC")


DateOrder: TypeAlias = Literal["YMD", "DMY", "MDY"]
"""The order of day, month and year in a date."""
_PARTS = {
    "Y": r"(?P<year>[0-9]{4})",
    "y": r"(?P<year>[0-9]{4}|[0-9]{2})",
    "M": r"(?P<month>[0-9]{1,2})",
    "D": r"(?P<day>[0-9]{1,2})",
}
_CLOCK = (
    r"(?:(?:T|,? +)(?P<hour>[0-9]{1,2})"
    r"(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,6}))?)?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?(?:Z|(?P<offset>[+-])(?P<hours>[0-9]{2})(?::?(?P<minutes>[0-9]{2}))?)?)?$"
)
_WRITTEN: dict[DateOrder, str] = {"YMD": "YMD", "DMY": "DMy", "MDY": "MDy"}
_PATTERNS = {order: "^" + "[./-]".join(_PARTS[part] for part in parts) + _CLOCK for order, parts in _WRITTEN.items()}

Numbers = NDArray[np.int64]


def moments(cells: pa.Array, order: DateOrder) -> pa.Array:
    """Cells without spaces around them as times; null where one is null or no time in this order."""
    if order == "YMD":
        cells = pc.replace_substring_regex(cells, "^([0-9]{4})([0-9]{2})([0-9]{2})$", r"\1-\2-\3")
    found = pc.extract_regex(cells, _PATTERNS[order])
    year, month, day, hour, minute, second, hours, minutes = (
        _numbers(found, name) for name in ("year", "month", "day", "hour", "minute", "second", "hours", "minutes")
    )
    year = np.where(pc.fill_null(pc.less(pc.binary_length(_part(found, "year")), 3), False), _century(year), year)
    fraction = _numbers(found, "fraction", padded=6)
    half = pc.fill_null(pc.ascii_upper(_part(found, "half")), "").to_numpy(zero_copy_only=False)
    sound = (half == "") | ((hour >= 1) & (hour <= 12))
    hour = np.where(half == "", hour, hour % 12 + 12 * (half == "P"))
    months = ((np.clip(year, 0, 9999) - 1970) * 12 + np.clip(month, 1, 12) - 1).astype("M8[M]")
    days = months.astype("M8[D]") + (day - 1)
    sound &= (month >= 1) & (month <= 12) & (day >= 1) & (days.astype("M8[M]") == months)
    sound &= (hour < 24) & (minute < 60) & (second < 60) & (hours < 24) & (minutes < 60)
    sign = np.where(pc.fill_null(pc.equal(_part(found, "offset"), "-"), False), -1, 1)
    seconds = (hour * 60 + minute - sign * (hours * 60 + minutes)) * 60 + second
    stamps = (days.astype(np.int64) * 86_400 + seconds) * 1_000_000 + fraction
    return pa.array(stamps, mask=~(sound & found.is_valid().to_numpy(zero_copy_only=False))).cast(TIME)


def are_dates(numbers: pa.Array) -> bool:
    """True if whole numbers without nulls may be dates of the years 1900 to 2099, such as 20240131."""
    if not len(numbers):
        return True
    low, high = (end.as_py() for end in pc.min_max(numbers).values())
    near = 19000101 <= low <= high <= 20991231
    return bool(near and moments(pc.unique(numbers).cast(pa.string()), "YMD").null_count == 0)


def _century(year: Numbers) -> Numbers:
    return np.where(year < 69, year + 2000, year + 1900)


def _part(found: pa.Array, name: str) -> pa.Array:
    return pc.struct_field(found, name)


def _numbers(found: pa.Array, name: str, padded: int = 1) -> Numbers:
    """A part as whole numbers, 0 where it is not written."""
    digits = pc.utf8_rpad(pc.fill_null(_part(found, name), "0"), padded, "0")
    numbers: Numbers = digits.cast(pa.int64()).to_numpy()
    return numbers

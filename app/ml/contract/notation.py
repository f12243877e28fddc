"""Notation of the text cells of a column as numbers, times or truth values, and its parser.

A cell is missing, fits the notation, or does not. Spaces around it count for nothing.

- A number has digits, a sign, a decimal mark and an exponent; by its notation also a thousands separator, a currency
  in front or behind, or a percent sign. 12.5 % is read as the fraction 0.125. (5.00) and 5.00- are -5, as in accounts.
- A time is a date in the notation's order, with or without a time of day (`app.ml.contract.dates_and_times`).
- A truth value is true or false, yes or no, y or n, t or f, 1 or 0.
- Texts and categories are what is written. Only an empty cell is missing among them, and what the caller gives as
  missing: NA and none are words.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, WithJsonSchema

from app.ml.contract.dates_and_times import DateOrder, moments
from app.ml.contract.missing_markers import MISSING
from app.wire import Wire

_TRUE, _FALSE = ["true", "yes", "y", "t", "1"], ["false", "no", "n", "f", "0"]
_SPACES = "[ \u00a0\u2009\u202f]"
_APOSTROPHES = "['\u2019]"
_SEPARATORS = {",": ",", ".": r"\.", " ": _SPACES, "'": _APOSTROPHES}
_INFINITE = "[iI][nN][fF](?:[iI][nN][iI][tT][yY])?"


Separator: TypeAlias = Annotated[Literal[",", ".", " ", "'"], WithJsonSchema({"type": "string"})]
"""Separator of thousands. A plain string on the wire: generators make no names of an apostrophe."""


class Notation(Wire):
    """Notation of the cells of a column in text; the defaults are the plain one (1234.5 and 2024-12-31)."""

    decimal: Literal[".", ","] = Field(".", description="Mark between the whole and the decimal digits of a number.")
    thousands: Separator | None = Field(
        None, description="Separator between groups of three digits; null: the digits are not grouped."
    )
    percent: bool = Field(
        False, description="Every number carries a percent sign, and its value is the fraction: 12.5 % is 0.125."
    )
    unit: str | None = Field(
        None, description="Currency in front of or behind the numbers, such as € or CHF; null: there is none."
    )
    dates: DateOrder = Field("YMD", description="Order of day, month and year in dates; YMD reads ISO 8601, too.")
    missing: tuple[str, ...] = Field(
        (), description="Cells that stand for a missing value in this column, beside the usual markers."
    )

    @property
    def plain(self) -> bool:
        """True if numbers are written as in programs."""
        return self.decimal == "." and self.thousands is None and self.unit is None and not self.percent


PLAIN = Notation()


def read(values: pa.Array, notation: Notation, kind: str, *, whole: bool = False) -> pa.Array:
    """Strings as float64, bool, time in UTC or string by the `ColumnKind`; null where missing or misfit.

    whole: int64 instead of float64, for numbers that all are whole and within 64 bits.
    """
    reader = _whole_numbers if whole else _READERS.get(kind)
    if reader is None:
        return without_missing(values, notation.missing)
    return reader(bare(values, notation.missing), notation)


def read_and_misfits(
    values: pa.Array, notation: Notation, kind: str, *, whole: bool = False
) -> tuple[pa.Array, pa.Array]:
    """The result of `read`, and which cells are neither missing nor written in this notation, as booleans."""
    found = read(values, notation, kind, whole=whole)
    return found, pc.and_(pc.is_valid(bare(values, notation.missing)), pc.is_null(found))


def bare(values: pa.Array, missing: tuple[str, ...] = (), markers: Sequence[str] = MISSING) -> pa.Array:
    """Without spaces around the cells; null where one is missing, by the usual markers or further ones."""
    trimmed = pc.utf8_trim_whitespace(values)
    is_missing = pc.is_in(trimmed, value_set=pa.array([*markers, *(marker.strip() for marker in missing)]))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), trimmed)


def without_missing(values: pa.Array, missing: tuple[str, ...] = ()) -> pa.Array:
    """Words without spaces around them; null where a cell is empty or one of `missing`."""
    return bare(values, missing, markers=("",))


def _whole_numbers(cells: pa.Array, notation: Notation) -> pa.Array:
    return _written_plainly(cells, notation).cast(pa.int64())


def _numbers(cells: pa.Array, notation: Notation) -> pa.Array:
    numbers = _written_plainly(cells, notation).cast(pa.float64())
    return pc.divide(numbers, 100.0) if notation.percent else numbers


def _written_plainly(cells: pa.Array, notation: Notation) -> pa.Array:
    """Numbers as programs write them, null where a cell is none; a percentage without its sign."""
    found = pc.extract_regex(cells, pattern(notation))
    sign, digits, exponent, opened, closed = (
        pc.struct_field(found, name) for name in ("sign", "number", "exponent", "opened", "closed")
    )
    flat = pc.match_substring_regex(digits, "[.,]$")  # 5.- is no debt
    accounted = pc.or_(pc.not_equal(opened, ""), pc.and_(pc.not_equal(closed, ""), pc.invert(flat)))
    if pc.any(accounted).as_py():
        balanced = pc.equal(pc.equal(opened, "("), pc.equal(closed, ")"))
        sound = pc.or_(pc.invert(accounted), pc.and_(balanced, pc.equal(sign, "")))
        digits = pc.if_else(sound, digits, pa.scalar(None, pa.string()))
        sign = pc.if_else(accounted, "-", sign)
    if notation.thousands is not None:
        digits = pc.replace_substring_regex(digits, _SEPARATORS[notation.thousands], "")
    if notation.decimal == ",":
        digits = pc.replace_substring(digits, ",", ".")
    signed = pc.replace_substring_regex(sign, "[-\u2212]", "-")
    unsigned = pc.replace_substring(signed, "+", "")
    return pc.binary_join_element_wise(unsigned, digits, exponent, "")


@lru_cache(256)
def pattern(notation: Notation) -> str:
    """The regular expression of a number, with the groups opened, sign, number, exponent and closed.

    Parentheses have to be a pair, which the expression does not demand: see `is_balanced`.
    """
    decimal = re.escape(notation.decimal)
    whole = "[0-9]+"
    if notation.thousands is not None:
        mark = _SEPARATORS[notation.thousands]
        lakhs = f"|[1-9][0-9]?(?:{mark}[0-9]{{2}})+{mark}[0-9]{{3}}" if mark == "," else ""
        whole = f"(?:[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+{lakhs}|[0-9]+)"
    number = f"(?P<number>{whole}(?:{decimal}[0-9]*)?|{decimal}[0-9]+{'|' + _INFINITE if notation.plain else ''})"
    unit = "" if notation.unit is None else f"(?:{_SPACES}*{re.escape(notation.unit)}{_SPACES}*)?"
    flat = "" if notation.unit is None and notation.thousands is None else "(?:[.,][-\u2013\u2014]{1,2})?"
    percent = f"{_SPACES}*%" if notation.percent else ""
    return (
        f"^(?P<opened>[(]?){unit}(?P<sign>[-+\u2212]?){unit}{number}(?P<exponent>(?:[eE][-+]?[0-9]+)?){flat}"
        f"{unit}{percent}(?P<closed>[-)]?)$"
    )


def is_balanced(number: "re.Match[str]") -> bool:
    """True if a match of `pattern` has one sign at most and its parentheses are a pair."""
    opened, closed, flat = number["opened"], number["closed"], number["number"].endswith((".", ","))
    return (opened == "(") == (closed == ")") and not (closed and number["sign"] and not flat)


def _booleans(cells: pa.Array, _: Notation) -> pa.Array:
    lower = pc.ascii_lower(cells)
    known = pc.is_in(lower, value_set=pa.array([*_TRUE, *_FALSE]))
    return pc.if_else(known, pc.is_in(lower, value_set=pa.array(_TRUE)), pa.scalar(None, pa.bool_()))


_READERS: dict[str, Callable[[pa.Array, Notation], pa.Array]] = {
    "numeric": _numbers,
    "boolean": _booleans,
    "datetime": lambda cells, notation: moments(cells, notation.dates),
}
"""By the `ColumnKind`; the others are texts."""

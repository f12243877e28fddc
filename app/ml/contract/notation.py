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
from typing import Annotated, Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, WithJsonSchema

from app.ml.contract.dates_and_times import DateOrder, may_match, moments
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


class OtherNotation(Wire):
    """Another notation that all cells of a column have, too: 1.234 is 1234 or a little more than 1."""

    notation: Notation = Field(description="The other notation.")
    exact: bool = Field(
        description="True where the values in this notation follow from those of the dataset: a job with a model of "
        "this notation uses them so. Else such a job is refused."
    )
    all_marked: bool = Field(
        False, description="True where every number carries the ambiguous mark, so that 1.0 stands for 1.000."
    )


class CellTexts(Wire):
    """Texts of the values of a column in its file, by which a model of categories knows them."""

    texts: dict[str, str] = Field(
        {},
        description="Text in the file by the usual text of the value, where they differ; the key of a missing value is "
        "empty.",
    )
    unique: bool = Field(
        description="True where every value has one text. Else, as with 5 and 05, a job with a model of such "
        "categories is refused."
    )


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


def read_closest(values: pa.Array, notation: Notation, kind: str) -> tuple[pa.Array, pa.Array]:
    """The result of `read_and_misfits` in this notation, or in another that fits more cells than it, and than the rest.

    With 1.234 in a column, 0.5 is no German number: there the mark is decimal, whatever the notation.
    """
    best = read_and_misfits(values, notation, kind)
    misfits = values.filter(best[1])
    if not len(misfits):
        return best
    misfits_bare = bare(misfits)
    for other in _others(notation, kind, misfits):
        if kind == "numeric" and not may_match(misfits_bare, pattern(other)):
            continue
        if pc.all(read_and_misfits(misfits, other, kind)[1]).as_py():
            continue
        found = read_and_misfits(values, other, kind)
        if _misfit_count(*found) < _misfit_count(*best):
            best = found
    return best


def _misfit_count(values: pa.Array, misfits: pa.Array) -> int:
    """The number of misfits, with infinite numbers, which one notation reads and no model takes."""
    infinite = pc.sum(pc.is_inf(values)).as_py() if pa.types.is_floating(values.type) else 0
    return int(pc.sum(misfits).as_py() or 0) + int(infinite or 0)


def _others(notation: Notation, kind: str, misfits: pa.Array) -> list[Notation]:
    """Other notations to be tried, those that are nearest first; of dates none where day and month may be either."""
    changes: list[dict[str, object]] = []
    if kind == "numeric":
        marks = {".": ",", ",": "."}
        mark = marks[notation.decimal]
        ways = [(notation.decimal, (notation.thousands, mark, " ", "'")), (mark, (None, *_SEPARATORS))]
        changes = [
            {"decimal": decimal, "thousands": thousands, "percent": percent}
            for percent in (notation.percent, not notation.percent)
            for decimal, separators in ways
            for thousands in separators
            if thousands != decimal
        ]
    elif kind == "datetime":
        fitting = {order: _fitting(misfits, order) for order in get_args(DateOrder)}
        dotted = pc.all(pc.match_substring(bare(misfits), ".")).as_py()
        if fitting["DMY"] == fitting["MDY"] and not dotted:
            fitting = {"YMD": fitting["YMD"]}
        changes = [{"dates": order} for order in sorted(fitting, key=lambda order: -fitting[order])]
    return [notation.model_copy(update=change) for change in changes]


def _fitting(cells: pa.Array, order: DateOrder) -> int:
    """Number of cells that are dates in this order."""
    times = moments(bare(cells), order)
    return len(times) - int(times.null_count)


def bare(values: pa.Array, missing: tuple[str, ...] = (), markers: Sequence[str] = MISSING) -> pa.Array:
    """Without spaces around the cells; null where one is missing, by the usual markers or further ones."""
    trimmed = pc.utf8_trim_whitespace(values)
    is_missing = pc.is_in(trimmed, value_set=pa.array([*markers, *(marker.strip() for marker in missing)]))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), trimmed)


def without_missing(values: pa.Array, missing: tuple[str, ...] = ()) -> pa.Array:
    """Words without blanks and tabs around them; null where a cell is empty or one of `missing`."""
    words = pc.utf8_trim(values, " \t")
    return pc.if_else(pc.is_null(bare(words, missing, markers=("",))), pa.scalar(None, pa.string()), words)


def number_markers(notation: Notation | None) -> list[float]:
    """Markers of a missing value in a column of this notation that are numbers, such as -999."""
    if notation is None or not notation.missing:
        return []
    numbers = read(pa.array(notation.missing, pa.string()), PLAIN, "numeric").to_pylist()
    return [number for number in numbers if number is not None]


def _whole_numbers(cells: pa.Array, notation: Notation) -> pa.Array:
    return _written_plainly(cells, notation).cast(pa.int64())


def _numbers(cells: pa.Array, notation: Notation) -> pa.Array:
    numbers = _written_plainly(cells, notation).cast(pa.float64())
    return pc.divide(numbers, 100.0) if notation.percent else numbers


def _written_plainly(cells: pa.Array, notation: Notation) -> pa.Array:
    """Numbers as programs write them, null where a cell is none; a percentage without its sign."""
    if not may_match(cells, pattern(notation)):
        return pa.nulls(len(cells), pa.string())
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

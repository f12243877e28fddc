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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, WithJsonSchema

from app.base.wire import Wire
from app.ml.contract.cell_shapes import ZERO, Bytes, Part, group_by_shape, letters_of, part_of
from app.ml.contract.dates_and_times import DateOrder, compiled, may_match, moments
from app.ml.contract.missing_markers import MISSING

_TRUE, _FALSE = ["true", "yes", "y", "t", "1"], ["false", "no", "n", "f", "0"]
FIRST_SIGN, LAST_SIGN = 0x21, 0x7E
"""Bytes of the printable characters of ASCII but the space."""
_SPACES = "[ \u00a0\u2009\u202f]"
_APOSTROPHES = "['\u2019]"
TRUTH_VALUES = (*_TRUE, *_FALSE)
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
    return _read(values, notation, kind, whole=whole)[0]


def read_and_misfits(
    values: pa.Array, notation: Notation, kind: str, *, whole: bool = False
) -> tuple[pa.Array, pa.Array]:
    """The result of `read`, and which cells are neither missing nor written in this notation, as booleans."""
    typed, cells = _read(values, notation, kind, whole=whole)
    return typed, pc.and_(pc.is_valid(cells), pc.is_null(typed))


def _read(values: pa.Array, notation: Notation, kind: str, *, whole: bool) -> tuple[pa.Array, pa.Array]:
    """The result of `read`, and the cells without those that are missing."""
    cells, reader = bare(values, notation.missing), _whole_numbers if whole else _READERS.get(kind)
    return (without_missing(values, notation.missing) if reader is None else reader(cells, notation)), cells


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
        candidate = read_and_misfits(values, other, kind)
        if _misfit_count(*candidate) < _misfit_count(*best):
            best = candidate
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
    trimmed = values if has_no_margins(values) else pc.utf8_trim_whitespace(values)
    if markers is MISSING and not missing and _end_with_digits(trimmed):
        return trimmed
    is_missing = pc.is_in(trimmed, value_set=pa.array([*markers, *(marker.strip() for marker in missing)]))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), trimmed) if pc.any(is_missing).as_py() else trimmed


def without_missing(values: pa.Array, missing: tuple[str, ...] = ()) -> pa.Array:
    """Words without blanks and tabs around them; null where a cell is empty or one of `missing`."""
    if not missing and has_no_margins(values):
        return values
    words = pc.utf8_trim(values, " \t")
    return pc.if_else(pc.is_null(bare(words, missing, markers=("",))), pa.scalar(None, pa.string()), words)


def has_no_margins(values: pa.Array) -> bool:
    """True if every string is null, or begins and ends with a sign of ASCII that is no space: none is empty then."""
    outer = _outer_letters(values)
    if outer is None:
        return False
    return not outer.size or bool((outer - FIRST_SIGN).max() <= LAST_SIGN - FIRST_SIGN)  # bytes below wrap around


def _end_with_digits(values: pa.Array) -> bool:
    """True if every string is null or ends with a digit, as no marker of a missing value does."""
    outer = _outer_letters(values)
    return outer is not None and (not outer.size or bool((outer[1] - ZERO).max() < 10))


def _outer_letters(values: pa.Array) -> Bytes | None:
    """(2, n) the first and the last byte of strings that are not null; None where one is empty, or none is a string."""
    if not pa.types.is_string(values.type):
        return None
    ends, letters = letters_of(values)
    starts, ends = ends[:-1], ends[1:]
    if values.null_count:
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        starts, ends = starts[valid], ends[valid]
    return letters[np.stack([starts, ends - 1])] if (starts < ends).all() else None


def number_markers(notation: Notation | None) -> list[float]:
    """Markers of a missing value in a column of this notation that are numbers, such as -999."""
    if notation is None or not notation.missing:
        return []
    numbers = read(pa.array(notation.missing, pa.string()), PLAIN, "numeric").to_pylist()
    return [number for number in numbers if number is not None]


def _whole_numbers(cells: pa.Array, notation: Notation) -> pa.Array:
    return _cast_numbers(cells, notation, pa.int64())


def _numbers(cells: pa.Array, notation: Notation) -> pa.Array:
    numbers = _cast_numbers(cells, notation, pa.float64())
    return pc.divide(numbers, 100.0) if notation.percent else numbers


def _cast_numbers(cells: pa.Array, notation: Notation, data_type: pa.DataType) -> pa.Array:
    """The numbers in a type, null where a cell is none; a percentage without its sign."""
    numbers, is_number = np.zeros(len(cells), data_type.to_pandas_dtype()), np.zeros(len(cells), np.bool_)
    for group in group_by_shape(cells):
        match = compiled(pattern(notation)).match(group.shape)
        if match is not None and match.end() == len(group.shape) and is_balanced(match):
            numbers[group.rows] = _written_plainly(group.letters, match, notation).cast(data_type).to_numpy()
            is_number[group.rows] = True
    return pa.array(numbers, data_type, mask=~is_number)


def _written_plainly(letters: Bytes, match: "re.Match[str]", notation: Notation) -> pa.Array:
    """Numbers of one shape, which has this match, as programs write them."""
    start = part_of(match, "number")
    assert start is not None  # noqa: S101  no number is empty
    columns: list[int] = []
    marks: list[int] = []
    column = start.start
    for letter in match["number"]:
        if notation.thousands is None or not re.match(_SEPARATORS[notation.thousands], letter):
            marks += [len(columns)] if letter == notation.decimal else []
            columns.append(column)
        column += len(letter.encode())
    exponent = part_of(match, "exponent") or Part(0, 0)
    plain = letters[:, [*columns, *range(exponent.start, exponent.end)]]
    plain[:, marks] = ord(".")
    if _is_negative(match):
        plain = np.hstack([np.full((len(plain), 1), ord("-"), np.uint8), plain])
    ends = np.arange(len(plain) + 1, dtype=np.int32) * plain.shape[1]
    return pa.StringArray.from_buffers(len(plain), pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(plain)))


def _is_negative(match: "re.Match[str]") -> bool:
    """True of a number with a minus sign or, as in accounts, in parentheses or with a minus sign behind it."""
    flat = match["number"].endswith((".", ","))  # 5.- is no debt
    return match["sign"] in {"-", "\u2212"} or match["opened"] != "" or (match["closed"] != "" and not flat)


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
    is_boolean = pc.is_in(lower, value_set=pa.array(TRUTH_VALUES))
    return pc.if_else(is_boolean, pc.is_in(lower, value_set=pa.array(_TRUE)), pa.scalar(None, pa.bool_()))


_READERS: dict[str, Callable[[pa.Array, Notation], pa.Array]] = {
    "numeric": _numbers,
    "boolean": _booleans,
    "datetime": lambda cells, notation: moments(cells, notation.dates),
}
"""By the `ColumnKind`; the others are texts."""

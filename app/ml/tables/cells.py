"""JSON values → one Arrow column of the kind a model wants, strictly.

A string is never read as a number, a number never as a category, a boolean never as either, so
`1`, `1.0`, `"1"` and `true` cannot meet in one category by accident. Whole numbers of 64 bits become
the nearest float64, as those of a dataset do; longer ones do not fit. Null is a missing value, and so are what
an upload reads as missing: an empty or blank string in any column; the usual markers, such as NA, as strings among
numbers, dates and truth values; markers that the upload of the training data gave; and an infinite number. Blanks
around words do not count. A date may also be written as in the training data.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.contract.missing_markers import MISSING
from app.ml.contract.notation import PLAIN, read
from app.ml.tables.cell_casting import number_text

EXACT = 2**53
"""Up to here float64 holds every whole number."""
WHOLE_BITS = 63
"""Bits of a whole number beside its sign."""
MOMENT = pa.timestamp("us", "UTC")


class Flaw(NamedTuple):
    """Why a value does not fit, without repeating it."""

    code: str
    detail: str


class _Kind(NamedTuple):
    types: frozenset[type]
    """The types of JSON for it, null besides."""
    read: Callable[[InputColumn, Sequence[Any]], pa.Array]
    """All at once. Raises one of `_REFUSALS` when a value does not fit."""
    why: Callable[[InputColumn, Any], Flaw | None]
    """A fault of one value of the right type."""
    wrong_type: Flaw


_REFUSALS = (pa.ArrowInvalid, OverflowError, UnicodeEncodeError)


def read_cells(column: InputColumn, values: Sequence[object]) -> tuple[pa.Array, list[int]]:
    """The values as an Arrow array of the column's kind, null where one is flawed, and where that is."""
    kind, values = _KINDS[ColumnKind(column.kind)], _as_used(column, values)
    types = set(map(type, values))
    whole = types <= kind.types and (column.nullable or type(None) not in types)
    if whole and not column.strict_levels:
        try:
            return kind.read(column, values), []
        except _REFUSALS:
            pass
    flawed = [i for i, value in enumerate(values) if flaw(column, value)]
    sound = list(values)
    for i in flawed:
        sound[i] = None
    return kind.read(column, sound), flawed


def flaw(column: InputColumn, value: object) -> Flaw | None:
    """Why this one value does not fit the column; None if it does."""
    kind, (value,) = _KINDS[ColumnKind(column.kind)], _as_used(column, [value])
    if value is None:
        return None if column.nullable else _MISSING
    if type(value) not in kind.types:
        return kind.wrong_type
    return kind.why(column, value) or (_UNKNOWN if column.strict_levels and not _is_level(column, value) else None)


def _is_level(column: InputColumn, value: Any) -> bool:
    """True if it is one of the levels, which ascend."""
    levels = column.levels or []
    index = bisect_left(levels, value)
    return index < len(levels) and levels[index] == value


def _as_used(column: InputColumn, values: Sequence[object]) -> Sequence[object]:
    """Values without blanks around words, null where one stands for a missing value; numbers and truth values of a
    column that the model uses as categories as the categories that they are.
    """
    types, missing_markers = set(map(type, values)), () if column.notation is None else column.notation.missing
    if str in types or (missing_markers and types & {int, float}):
        markers = {*map(str.strip, missing_markers), *([""] if column.kind in _WORDS else MISSING)}
        values = [_without_marker(value, markers) for value in values]
    if float in types and not column.nullable:
        values = [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
    if column.source_kind is None or ColumnKind(column.kind).measured:
        return values
    if column.source_kind == ColumnKind.BOOLEAN:
        return [str(value).lower() if isinstance(value, bool) else value for value in values]
    if column.source_kind == ColumnKind.NUMERIC:
        return [_category(value) if type(value) in {int, float} else value for value in values]
    return values


def _without_marker(value: object, markers: Collection[str]) -> object:
    """The value, None where it is a marker of a missing one."""
    if isinstance(value, str):
        word = value.strip()
        return None if word in markers else word
    if type(value) in {int, float} and number_text(value) in markers:  # type: ignore[arg-type]
        return None
    return value


def _category(number: Any) -> object:
    """The category of a number, None of an infinite one; the number itself where it is none, which is a flaw."""
    if isinstance(number, float) and not math.isfinite(number):
        return None
    return number if _why_no_number(number) else number_text(number)


def _numbers(_: InputColumn, values: Sequence[Any]) -> pa.Array:
    try:
        numbers = pa.array(values, pa.float64())
    except _REFUSALS:  # some are rounded
        if any(map(_why_no_number, values)):
            raise
        numbers = pa.array([None if value is None else float(value) for value in values], pa.float64())
    finite = pc.is_finite(numbers)
    return numbers if pc.all(finite).as_py() else pc.if_else(finite, numbers, pa.scalar(None, pa.float64()))


def _why_no_number(value: Any) -> Flaw | None:
    return _INEXACT if isinstance(value, int) and not is_within_64_bits(value) else None


def is_within_64_bits(number: int) -> bool:
    """True for a whole number that has 64 bits with its sign."""
    return -(1 << WHOLE_BITS) <= number < 1 << WHOLE_BITS


def _booleans(_: InputColumn, values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.bool_())


def _texts(_: InputColumn, values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.string())


def _why_no_text(_: InputColumn, value: str) -> Flaw | None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return _NOT_UNICODE
    return None


def _moments(column: InputColumn, values: Sequence[Any]) -> pa.Array:
    """ISO 8601 with or without an offset, or as in the training data; without an offset it is UTC, as in a file."""
    texts = pa.array(values, pa.string())
    for kind in (MOMENT, pa.timestamp("us")):
        try:
            return texts.cast(kind).cast(MOMENT)
        except pa.ArrowInvalid:
            continue
    if len(values) == 1:
        times = read(texts, column.notation or PLAIN, ColumnKind.DATETIME)
        if times.null_count:
            raise pa.ArrowInvalid
        return times
    return pa.concat_arrays([_moments(column, [value]) for value in values])  # some have an offset, some have none


def _why_no_moment(column: InputColumn, value: str) -> Flaw | None:
    try:
        _moments(column, [value])
    except _REFUSALS:
        return _NO_MOMENT
    return None


_MISSING = Flaw("missing_value", "This column may not be null.")
_UNKNOWN = Flaw("unknown_item", "The model has no item of this name: it predicts those that it was trained on.")
_NO_NUMBER = Flaw("not_a_number", "A number is needed; a string or a boolean is not taken for one.")
_INEXACT = Flaw("inexact_number", "A whole number of more than 64 bits is rounded in float64; send it as a float.")
_NO_BOOLEAN = Flaw("not_a_boolean", "true or false is needed; a number or a string is not taken for one.")
_NO_TEXT = Flaw("not_a_string", "A string is needed; a number or a boolean is not taken for one.")
_NOT_UNICODE = Flaw("not_unicode", "The string holds half a surrogate pair, which is no character.")
_NO_MOMENT = Flaw("not_a_datetime", "A string with a date, or a date and time, in ISO 8601 is needed.")

_WORDS = {ColumnKind.CATEGORICAL, ColumnKind.TEXT}
_NONE = type(None)
_TEXT = _Kind(frozenset({str, _NONE}), _texts, _why_no_text, _NO_TEXT)
_KINDS = {
    ColumnKind.NUMERIC: _Kind(
        frozenset({int, float, _NONE}), _numbers, lambda _, number: _why_no_number(number), _NO_NUMBER
    ),
    ColumnKind.BOOLEAN: _Kind(frozenset({bool, _NONE}), _booleans, lambda _, __: None, _NO_BOOLEAN),
    ColumnKind.CATEGORICAL: _TEXT,
    ColumnKind.TEXT: _TEXT,
    ColumnKind.DATETIME: _Kind(frozenset({str, _NONE}), _moments, _why_no_moment, _NO_MOMENT),
}

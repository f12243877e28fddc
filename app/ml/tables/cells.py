"""JSON values → one Arrow column of the kind a model wants, strictly.

A string is never read as a number, a number never as a category, a boolean never as either, so
`1`, `1.0`, `"1"` and `true` cannot meet in one category by accident. Whole numbers widen to float64
as far as ±2⁵³, beyond which float64 would round them silently. Null is a missing value.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.tables.casting import number_text

EXACT = 2**53
"""Up to here float64 holds every whole number."""
MOMENT = pa.timestamp("us", "UTC")


class Flaw(NamedTuple):
    """Why a value does not fit, without repeating it."""

    code: str
    detail: str


class _Kind(NamedTuple):
    types: frozenset[type]
    """The types of JSON for it, null besides."""
    read: Callable[[Sequence[Any]], pa.Array]
    """All at once. Raises one of `_REFUSALS` when a value does not fit."""
    why: Callable[[Any], Flaw | None]
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
            return kind.read(values), []
        except _REFUSALS:
            pass
    flawed = [i for i, value in enumerate(values) if flaw(column, value)]
    sound = list(values)
    for i in flawed:
        sound[i] = None
    return kind.read(sound), flawed


def flaw(column: InputColumn, value: object) -> Flaw | None:
    """Why this one value does not fit the column; None if it does."""
    kind, (value,) = _KINDS[ColumnKind(column.kind)], _as_used(column, [value])
    if value is None:
        return None if column.nullable else _MISSING
    if type(value) not in kind.types:
        return kind.wrong_type
    return kind.why(value) or (_UNKNOWN if column.strict_levels and not _is_level(column, value) else None)


def _is_level(column: InputColumn, value: Any) -> bool:
    """True if it is one of the levels, which ascend."""
    levels = column.levels or []
    at = bisect_left(levels, value)
    return at < len(levels) and levels[at] == value


def _as_used(column: InputColumn, values: Sequence[object]) -> Sequence[object]:
    """Numbers and truth values of a column that the model uses as categories, as the categories that they are."""
    if column.source_kind is None or ColumnKind(column.kind).measured:
        return values
    if column.source_kind == ColumnKind.BOOLEAN:
        return [str(value).lower() if isinstance(value, bool) else value for value in values]
    if column.source_kind == ColumnKind.NUMERIC:
        return [_category(value) if type(value) in {int, float} else value for value in values]
    return values


def _category(number: Any) -> object:
    """The category of a number; the number itself where it is none, which is a flaw of its own."""
    return number if _why_no_number(number) else number_text(number)


def _numbers(values: Sequence[Any]) -> pa.Array:
    array = pa.array(values, pa.float64())
    if not all(map(math.isfinite, filter(None, values))):
        raise pa.ArrowInvalid
    return array


def _why_no_number(value: float) -> Flaw | None:
    if isinstance(value, int):
        return None if abs(value) <= EXACT else _INEXACT
    return None if math.isfinite(value) else _NOT_FINITE


def _booleans(values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.bool_())


def _texts(values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.string())


def _why_no_text(value: str) -> Flaw | None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return _NOT_UNICODE
    return None


def _moments(values: Sequence[Any]) -> pa.Array:
    """ISO 8601 with or without an offset; without one it is UTC, as in an uploaded file."""
    texts = _texts(values)
    for kind in (MOMENT, pa.timestamp("us")):
        try:
            return texts.cast(kind).cast(MOMENT)
        except pa.ArrowInvalid:
            continue
    if len(values) == 1:
        raise pa.ArrowInvalid
    return pa.concat_arrays([_moments([value]) for value in values])  # some have an offset, some have none


def _why_no_moment(value: str) -> Flaw | None:
    try:
        _moments([value])
    except _REFUSALS:
        return _NO_MOMENT
    return None


_MISSING = Flaw("missing_value", "This column may not be null.")
_UNKNOWN = Flaw("unknown_item", "The model has no item of this name: it predicts those that it was trained on.")
_NO_NUMBER = Flaw("not_a_number", "A number is needed; a string or a boolean is not taken for one.")
_INEXACT = Flaw("inexact_number", "A whole number beyond 2^53 is not exact in float64; send it as a float.")
_NOT_FINITE = Flaw("not_finite", "The number is not finite; send null for a missing value.")
_NO_BOOLEAN = Flaw("not_a_boolean", "true or false is needed; a number or a string is not taken for one.")
_NO_TEXT = Flaw("not_a_string", "A string is needed; a number or a boolean is not taken for one.")
_NOT_UNICODE = Flaw("not_unicode", "The string holds half a surrogate pair, which is no character.")
_NO_MOMENT = Flaw("not_a_datetime", "A string with a date, or a date and time, in ISO 8601 is needed.")

_NONE = type(None)
_TEXT = _Kind(frozenset({str, _NONE}), _texts, _why_no_text, _NO_TEXT)
_KINDS = {
    ColumnKind.NUMERIC: _Kind(frozenset({int, float, _NONE}), _numbers, _why_no_number, _NO_NUMBER),
    ColumnKind.BOOLEAN: _Kind(frozenset({bool, _NONE}), _booleans, lambda _: None, _NO_BOOLEAN),
    ColumnKind.CATEGORICAL: _TEXT,
    ColumnKind.TEXT: _TEXT,
    ColumnKind.DATETIME: _Kind(frozenset({str, _NONE}), _moments, _why_no_moment, _NO_MOMENT),
}

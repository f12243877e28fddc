"""Type inference for text columns: the lattice integer → float → boolean → datetime → text.

A column has the first form that *all* its values over the whole file have; a column without values has none.

- Missing: the tokens in `app.ml.contract.missing_markers.MISSING`, also with spaces around them and in quotes; in a
  column of text only the empty cell.
- Numbers may have spaces around them, a leading plus, an exponent (`1E+05`); 0 and 1 are numbers. Whole numbers that
  are rounded as floats, and are not all within 64 bits, are text. Hexadecimal is text. Files separated by semicolons
  may write 3,14 for 3.14.
- Booleans are `true` and `false` in any case; yes, no, t, f stay categories.
- Datetimes are ISO 8601 dates, or dates and times to the microsecond, all without a zone (read as UTC) or all with.
- Text is without the spaces around it.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.ingest.joined_columns import JOINED_COLUMNS, SHORT_BYTES
from app.ml.contract.dates_and_times import TIME
from app.ml.contract.notation import bare, without_missing

_PROBES = np.array([0, 1, 2, 5, 11, 23, 47, 95])
"""Rows of the cells that show which forms a column cannot have."""
PROBED = 64
"""Values tried first: Arrow writes an error text for every value that does not fit, and goes on."""


EXACT, EXACT_DIGITS = 2.0**53, 16
"""The largest whole number up to which floats hold all, and its digits."""


class Form(Enum):
    INTEGER = pa.int64()
    FLOAT = pa.float64()
    DECIMAL_COMMA = "float64 with a comma"
    BOOLEAN = pa.bool_()
    NAIVE = "timestamp without a zone"
    ZONED = TIME
    TEXT = pa.string()

    @property
    def type(self) -> pa.DataType:
        return {Form.DECIMAL_COMMA: pa.float64(), Form.NAIVE: TIME}.get(self, self.value)


NUMBERS = (Form.INTEGER, Form.FLOAT, Form.DECIMAL_COMMA)


def narrow(possible: tuple[Form, ...], values: pa.Array) -> tuple[Form, ...]:
    """Those of the `possible` forms that `values` have, too; missing values have every form.

    Start with all the forms a file may hold, TEXT last: the first one left at the end is the column's.
    """
    if possible == (Form.TEXT,) or values.null_count == len(values):
        return possible
    forms: list[Form] = []
    for form in possible:
        if form is Form.TEXT or (Form.INTEGER in forms and form in NUMBERS):  # whole numbers are also the others
            forms.append(form)
            continue
        try:
            read = read_as(values, form)
        except pa.ArrowInvalid:
            continue
        if read.null_count == len(read):
            return possible
        forms.append(form)
    return tuple(forms)


def narrow_all(possible: Sequence[tuple[Form, ...]], columns: Sequence[pa.Array]) -> list[tuple[Form, ...]]:
    """The forms that `narrow` gives each column, all of one length; those of one form are read in one call."""
    narrowed = list(possible)
    open_columns: list[int] = []
    for number, (forms, values) in enumerate(zip(possible, columns, strict=True)):
        if values.nbytes > SHORT_BYTES:
            narrowed[number] = narrow(forms, values)
        elif forms != (Form.TEXT,) and values.null_count < len(values):
            open_columns.append(number)
    groups: dict[tuple[Form, ...], list[int]] = defaultdict(list)
    if open_columns:
        sample = _sample([columns[number] for number in open_columns])
        fits = {form: _fits(sample, form, len(open_columns)) for form in _PATTERNS}
        for place, number in enumerate(open_columns):
            groups[tuple(form for form in possible[number] if form is Form.TEXT or fits[form][place])].append(number)
    for forms, numbers in groups.items():
        for start in range(0, len(numbers), JOINED_COLUMNS):
            part = numbers[start : start + JOINED_COLUMNS]
            for number, left in zip(part, _narrow_joined(forms, [columns[n] for n in part]), strict=True):
                narrowed[number] = left
    return narrowed


def _sample(columns: Sequence[pa.Array]) -> pa.Array:
    """A few cells of every column, as many of each."""
    rows = len(columns[0])
    places = rows * np.arange(len(columns))[:, None] + _PROBES % rows
    return pa.concat_arrays(columns).take(pa.array(places.ravel()))


def _fits(cells: pa.Array, form: Form, columns: int) -> NDArray[np.bool_]:
    """False for a column that has a cell that `form` cannot have; `cells` are those of all columns, as many of each."""
    fitting = pc.match_substring_regex(_bare(cells), _PATTERNS[form])
    every: NDArray[np.bool_] = (
        pc.fill_null(fitting, True).to_numpy(zero_copy_only=False).reshape(columns, -1).all(axis=1)
    )
    return every


def _narrow_joined(forms: tuple[Form, ...], columns: Sequence[pa.Array]) -> list[tuple[Form, ...]]:
    """The forms that `narrow` gives columns that have the same possible forms, and a value each."""
    if len(columns) == 1:
        return [narrow(forms, columns[0])]
    if forms == (Form.TEXT,):
        return [forms] * len(columns)
    joined, integers = pa.concat_arrays(columns), False
    for form in forms:
        if form is Form.TEXT or (integers and form in NUMBERS):
            continue
        try:
            read_as(joined, form)
        except pa.ArrowInvalid:
            return _narrow_apart(forms, form, columns, _fits(joined, form, len(columns)))
        integers |= form is Form.INTEGER
    return [forms] * len(columns)


def _narrow_apart(
    forms: tuple[Form, ...], form: Form, columns: Sequence[pa.Array], fits: NDArray[np.bool_]
) -> list[tuple[Form, ...]]:
    """Those that cannot have the form, apart from the others; where all seem to have it, one half and the other."""
    others = tuple(other for other in forms if other is not form)
    half = len(columns) // 2
    if fits.all():
        return _narrow_joined(forms, columns[:half]) + _narrow_joined(forms, columns[half:])
    narrowed: list[tuple[Form, ...]] = [()] * len(columns)
    for chosen, left in ((np.flatnonzero(fits), forms), (np.flatnonzero(~fits), others)):
        if chosen.size:
            group = [columns[number] for number in chosen.tolist()]
            for number, result in zip(chosen.tolist(), _narrow_joined(left, group), strict=True):
                narrowed[number] = result
    return narrowed


def read_as(values: pa.Array, form: Form) -> pa.Array:
    """Strings as the type of `form`. Raises pa.ArrowInvalid where one does not have it."""
    read = _READ[form]
    if form is Form.TEXT:
        return read(values)
    try:
        read(values[:PROBED])
        return read(values)
    except pa.ArrowInvalid:
        read(_bare(values[:PROBED]))
        return read(_bare(values))


def _bare(values: pa.Array) -> pa.Array:
    """Values without spaces, missing tokens and leading plus signs, which the quick parser cannot read."""
    return pc.replace_substring_regex(bare(values), r"^\+([0-9.])", r"\1")


def _integer(values: pa.Array) -> pa.Array:
    read = values.cast(pa.int64())
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32)[[values.offset, values.offset + len(values)]]
    text = bytes(memoryview(data)[ends[0] : ends[1]]) if data is not None else b""
    if b"x" in text or b"X" in text:
        _demand(pc.invert(pc.match_substring(values, "x", ignore_case=True)))  # Arrow reads 0x1F
    return read


def _float(values: pa.Array) -> pa.Array:
    read = values.cast(pa.float64())
    if (pc.max(pc.binary_length(values)).as_py() or 0) >= EXACT_DIGITS:
        beyond = values.filter(pc.greater(pc.abs(read), EXACT))
        _demand(pc.invert(pc.match_substring_regex(beyond, r"^\s*[-+]?[0-9]+\s*$")))
    return read


def _decimal_comma(values: pa.Array) -> pa.Array:
    _demand(pc.invert(pc.match_substring(values, ".")))
    return _float(pc.replace_substring(values, ",", "."))


def _boolean(values: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(values)
    _demand(pc.is_in(lower, value_set=pa.array(["true", "false", None])))
    return pc.equal(lower, "true")


def _naive(values: pa.Array) -> pa.Array:
    return values.cast(pa.timestamp("us")).cast(pa.int64()).cast(TIME)


def _demand(held: pa.Array) -> None:
    if not pc.all(held, min_count=0).as_py():
        raise pa.ArrowInvalid


_NUMBER = "[0-9]*{}?[0-9]*(?:e[-+]?[0-9]+)?"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_PATTERNS = {
    Form.INTEGER: "^-?0*[0-9]{1,19}$",
    Form.FLOAT: f"(?i)^[-+]?(?:{_NUMBER.format('[.]')}|inf(?:inity)?|nan.*)$",
    Form.DECIMAL_COMMA: f"(?i)^[-+]?(?:{_NUMBER.format(',')}|inf(?:inity)?|nan.*)$",
    Form.BOOLEAN: "(?i)^(?:true|false)$",
    Form.NAIVE: f"^{_DAY}(?:[ T][0-9:.]+)?$",
    Form.ZONED: f"^{_DAY}[ T][0-9:.]+(?:Z|[-+][0-9:]+)$",
}
"""Every cell of a form fits its pattern; a few cells fit it that do not have the form."""
_READ: dict[Form, Callable[[pa.Array], pa.Array]] = {
    Form.INTEGER: _integer,
    Form.FLOAT: _float,
    Form.DECIMAL_COMMA: _decimal_comma,
    Form.BOOLEAN: _boolean,
    Form.NAIVE: _naive,
    Form.ZONED: lambda values: values.cast(TIME),
    Form.TEXT: without_missing,
}

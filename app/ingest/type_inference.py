"""Type inference for text columns: the lattice integer → float → boolean → datetime → text.

A column has the first form that *all* its values over the whole file have; a column without values has none.

- Missing: the tokens in `app.ml.contract.missing_markers.MISSING`, also with spaces around them and in quotes.
- Numbers may have spaces around them, a leading plus, an exponent (`1E+05`); whole numbers beyond 64 bits are floats;
  0 and 1 are numbers. Hexadecimal is text. Files separated by semicolons may write 3,14 for 3.14.
- Booleans are `true` and `false` in any case; yes, no, t, f stay categories.
- Datetimes are ISO 8601 dates, or dates and times to the microsecond, all without a zone (read as UTC) or all with.
- Text keeps its spaces.
"""

from collections.abc import Callable
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from app.ml.contract.dates_and_times import TIME
from app.ml.contract.notation import bare, without_missing

PROBED = 64
"""Values tried first: Arrow writes an error text for every value that does not fit, and goes on."""


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
    kept: list[Form] = []
    for form in possible:
        if form is Form.TEXT or (Form.INTEGER in kept and form in NUMBERS):  # whole numbers are also the others
            kept.append(form)
            continue
        try:
            read = read_as(values, form)
        except pa.ArrowInvalid:
            continue
        if read.null_count == len(read):
            return possible
        kept.append(form)
    return tuple(kept)


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
    data = values.buffers()[2].to_pybytes()
    if b"x" in data or b"X" in data:
        _demand(pc.invert(pc.match_substring(values, "x", ignore_case=True)))  # Arrow reads 0x1F
    return read


def _decimal_comma(values: pa.Array) -> pa.Array:
    _demand(pc.invert(pc.match_substring(values, ".")))
    return pc.replace_substring(values, ",", ".").cast(pa.float64())


def _boolean(values: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(values)
    _demand(pc.is_in(lower, value_set=pa.array(["true", "false", None])))
    return pc.equal(lower, "true")


def _naive(values: pa.Array) -> pa.Array:
    return values.cast(pa.timestamp("us")).cast(pa.int64()).cast(TIME)


def _demand(held: pa.Array) -> None:
    if not pc.all(held, min_count=0).as_py():
        raise pa.ArrowInvalid


_READ: dict[Form, Callable[[pa.Array], pa.Array]] = {
    Form.INTEGER: _integer,
    Form.FLOAT: lambda values: values.cast(pa.float64()),
    Form.DECIMAL_COMMA: _decimal_comma,
    Form.BOOLEAN: _boolean,
    Form.NAIVE: _naive,
    Form.ZONED: lambda values: values.cast(TIME),
    Form.TEXT: without_missing,
}

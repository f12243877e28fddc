"""Cells of a column in the Arrow type of another kind, or in another notation of the same numbers and dates."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.ml.contract.columns import ColumnKind
from app.ml.contract.notation import PLAIN, Notation, OtherNotation, number_markers, read, read_closest
from app.ml.preparation.arrow_columns import Cells

THOUSAND = 1000.0


def write_as_in_file(cells: Cells, texts: Mapping[str, str]) -> Cells:
    """The categories as they are written in the file. texts: by the usual ones; the key of a missing value is empty."""
    usual = pc.fill_null(cells, "")
    places = pc.index_in(usual, value_set=pa.array([*texts], pa.string()))
    written = pa.array([*texts.values()], pa.string()).take(places.combine_chunks()) if texts else None
    return cells if written is None else pc.coalesce(pa.chunked_array([written]), cells)


def remove_markers(cells: Cells, markers: tuple[str, ...]) -> Cells:
    """The cells, null where one is a marker of a missing value."""
    if pa.types.is_string(cells.type):
        values = pa.array(markers, pa.string())
    else:
        numbers = number_markers(Notation(missing=markers))
        is_number = pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)
        if not numbers or not is_number:
            return cells
        values = pa.array(numbers).cast(cells.type, safe=False)
    return pc.if_else(pc.is_in(cells, value_set=values), pa.scalar(None, cells.type), cells)


def convert_notation(cells: Cells, notation: Notation, other: OtherNotation) -> Cells:
    """Values that were read in a notation, as they are in the other one."""
    if pa.types.is_temporal(cells.type):
        times = cells.cast(pa.timestamp("us")).to_numpy()
        swapped = pa.array(_swap_month_and_day(times), pa.timestamp("us"), from_pandas=True)
        return pa.chunked_array([swapped.cast(cells.type)])
    numbers = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
    grouped = notation.thousands is not None
    has_fraction = numbers != np.trunc(numbers)  # behind the decimal mark
    fewer = np.where(grouped & (np.abs(numbers) >= THOUSAND), numbers / THOUSAND, numbers)
    more = has_fraction | (not grouped and other.all_marked)
    numbers = np.where(more, np.round(numbers * THOUSAND), fewer)
    return pa.chunked_array([pa.array(numbers, pa.float64(), from_pandas=True)])


def _swap_month_and_day(times: NDArray[np.datetime64]) -> NDArray[np.datetime64]:
    """(n,) times of days up to the twelfth: 2024-03-01 for 2024-01-03."""
    day = times.astype("M8[D]")
    month = day.astype("M8[M]")
    year = month.astype("M8[Y]")
    days, months = day - month.astype("M8[D]"), month - year.astype("M8[M]")  # from 0
    first = (year.astype("M8[M]") + days.astype(np.int64)).astype("M8[D]")
    swapped: NDArray[np.datetime64] = first + months.astype(np.int64) + (times - day)
    return swapped


MIN_PLAIN, MAX_PLAIN = 1e-4, 1e10
"""Numbers that are written without an exponent."""


def recast_cells(cells: Cells, kind: ColumnKind, notation: Notation = PLAIN) -> Cells:
    """The cells in the Arrow type of this kind."""
    if isinstance(cells, pa.ChunkedArray):
        return pa.chunked_array([recast_cells(chunk, kind, notation) for chunk in cells.chunks], _TYPES[kind])
    if cells.type == _TYPES[kind]:
        return cells
    if pa.types.is_string(cells.type):
        values = read(cells, notation, kind) if not kind.measured else read_closest(cells, notation, kind)[0]
        return _finite(values) if kind is ColumnKind.NUMERIC else values
    if not kind.measured:
        return _texts(cells)
    if kind in {ColumnKind.DATETIME, ColumnKind.BOOLEAN}:  # 20241231, 0 and 1
        return read(_texts(cells), notation, kind)
    return cells.cast(_TYPES[kind])


def _finite(numbers: pa.Array) -> pa.Array:
    """Numbers, null where one is infinite."""
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, numbers.type))


def _texts(cells: pa.Array) -> pa.Array:
    if pa.types.is_floating(cells.type):
        cells = pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
        coded = pc.add(cells, 0.0).dictionary_encode()  # -0.0 is 0.0
        return _number_texts(coded.dictionary).take(coded.indices)
    if pa.types.is_temporal(cells.type):
        return pc.strftime(cells, "%Y-%m-%dT%H:%M:%SZ")
    return cells.cast(pa.string())


def _number_texts(numbers: pa.Array) -> pa.Array:
    """The categories of numbers that are there. Arrow writes those without an exponent as Python does, but quicker."""
    sizes = np.abs(numbers.to_numpy())
    if numbers.type == pa.float64() and ((sizes == 0) | ((sizes >= MIN_PLAIN) & (sizes < MAX_PLAIN))).all():
        return numbers.cast(pa.string())
    return pa.array([number_text(number) for number in numbers.to_pylist()], pa.string())


def number_text(number: float) -> str:
    """The category of a number: its shortest text, of a whole one within 64 bits all digits."""
    if float(number).is_integer() and abs(number) < 1 << 63:
        return str(int(number))
    return repr(float(number))


_TYPES = {
    ColumnKind.NUMERIC: pa.float64(),
    ColumnKind.BOOLEAN: pa.bool_(),
    ColumnKind.CATEGORICAL: pa.string(),
    ColumnKind.TEXT: pa.string(),
    ColumnKind.DATETIME: pa.timestamp("us", "UTC"),
}

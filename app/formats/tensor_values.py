"""Values of a tensor → cells of the model's columns, with every value refused that a column does not take."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.formats.tensor_decoding import Tensor, refused
from app.ml.contract.algorithm import Matrix
from app.ml.contract.columns import ColumnKind, InputColumn
from app.ml.contract.notation import number_markers
from app.ml.tables.cells import WHOLE_BITS, Flaw, flaw, read_cells
from app.ml.tables.rows import MAX_FAULTS

KIND, NULLABLE = map(attrgetter, ("kind", "nullable"))


def all_numbers(columns: Sequence[InputColumn]) -> bool:
    return set(map(KIND, columns)) == {ColumnKind.NUMERIC}


def exact_matrix(tensor: Tensor, columns: Sequence[InputColumn], rows: int) -> Matrix:
    """The raw matrix (n, p) of one tensor. Raises InvalidTensor, InvalidData."""
    if isinstance(tensor.values, list):
        raise refused(f"{tensor.pointer}/datatype", "The column takes numbers: send a numeric datatype, such as FP64.")
    values = np.asarray(tensor.values, np.float64).reshape(rows, len(columns))
    if np.isinf(values).any():
        values = np.where(np.isinf(values), np.nan, values)
    for place, column in enumerate(columns):
        if markers := number_markers(column.notation):
            values = values.copy()
            values[np.isin(values[:, place], markers), place] = np.nan
    _refuse_flaws(tensor, values, columns)
    return values


def cells_of(tensor: Tensor, column: InputColumn) -> pa.Array:
    values = tensor.values if isinstance(tensor.values, list) else _json_values(tensor.values)
    cells, flawed = read_cells(column, values)
    if flawed:
        raise _flawed(tensor, [(position, column, values[position]) for position in flawed[:MAX_FAULTS]], len(flawed))
    return cells


def _json_values(numbers: NDArray[Any]) -> list[Any]:
    """The values as they would be in a row: missing is None."""
    values: list[Any] = numbers.tolist()
    return [None if value != value else value for value in values]  # noqa: PLR0124  only NaN is unlike itself


def _refuse_flaws(tensor: Tensor, values: Matrix, columns: Sequence[InputColumn]) -> None:
    """Values that `app.ml.tables.cells` refuses in a column of numbers, without an object per cell. values: as floats.

    Raises InvalidData.
    """
    bad = np.zeros(values.shape, np.bool_)
    sent = np.asarray(tensor.values)
    if sent.dtype == np.uint64:
        bad = (sent >> WHOLE_BITS).astype(np.bool_).reshape(values.shape)
    if not all(map(NULLABLE, columns)):
        bad |= np.isnan(values) & np.array([not column.nullable for column in columns])
    if bad.any():
        places = np.flatnonzero(bad)
        shown = zip(places[:MAX_FAULTS].tolist(), _json_values(sent[places[:MAX_FAULTS]]), strict=True)
        raise _flawed(tensor, [(place, columns[place % len(columns)], value) for place, value in shown], places.size)


def _flawed(tensor: Tensor, values: Sequence[tuple[int, InputColumn, Any]], count: int) -> InvalidData:
    faults = []
    for position, column, value in values:
        code, detail = flaw(column, value) or Flaw("invalid", "")
        faults.append(Fault(tensor.place(position), detail, code))
    return InvalidData(f"The tensor holds {count} fault{'s'[: count != 1]}.", faults=faults)

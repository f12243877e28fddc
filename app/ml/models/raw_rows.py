"""Raw matrices of rows of a request: one row, or one row with some inputs varied; and what the model predicts for
them, as numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.columns import InputColumn
from app.ml.models.model import Model
from app.ml.tables.rows import read_rows


def one_row(row: Mapping[str, Any], inputs: Sequence[InputColumn], root: str) -> dict[str, pa.Array]:
    """The cells of the one row. Faults point into the request."""
    try:
        table: pa.Table = read_rows({"rows": [dict(row)]}, inputs, max_rows=1).table
    except InvalidData as error:
        raise InvalidData(error.detail, faults=[_moved(fault, root) for fault in error.faults]) from None
    return {column.name: table.column(column.name) for column in inputs}


def _moved(fault: Fault, root: str) -> Fault:
    return fault._replace(pointer=root + fault.pointer.removeprefix("/rows").removeprefix("/0"))


def raw_matrix(model: Model, held: Mapping[str, pa.Array], varied: Mapping[str, pa.Array], rows: int) -> Matrix:
    """The raw matrix of `rows` rows: cells that are held stay the same."""
    first = pa.array(np.zeros(rows, np.intp))
    columns = [varied[c.name] if c.name in varied else held[c.name].take(first) for c in model.inputs]
    return model.preparation.raw(pa.table(columns, names=[column.name for column in model.inputs]))


def grid(base: Matrix, axes: Sequence[tuple[int, Vector]]) -> Matrix:
    """The raw matrix of every combination, the last axis changing fastest.

    base: (1, p), the raw row that gives the other inputs. axes: places of inputs, each with its raw values.
    """
    combined = np.meshgrid(*(values for _, values in axes), indexing="ij")
    raw = base[np.zeros(combined[0].size, np.intp)]
    for (place, _), values in zip(axes, combined, strict=True):
        raw[:, place] = values.ravel()
    return raw


def outputs(model: Model, raw: Matrix) -> Matrix:
    """(n, q) the model's predictions, as numbers. Of a clustering there are none: its labels have no order."""
    predicted = model.predict_raw(raw)
    values = predicted.values if predicted.probabilities is None else predicted.probabilities
    if model.task.labels:
        return np.zeros((len(raw), 0))
    return np.asarray(values, np.float64).reshape(len(raw), -1)

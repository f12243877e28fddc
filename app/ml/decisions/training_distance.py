"""Distance of points to the rows of a table, and how far apart those rows are."""

from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.decisions.design import ModelRows
from app.ml.numerics.neighbours.nearest import neighbours

COMPARED = 1000
"""Rows whose distance to the nearest other one is looked up."""


class TrainingDistance(NamedTuple):
    """Rows of a table in the prepared columns of a model, where distances do not depend on units."""

    rows: ModelRows
    numbers: Labels
    """(n,) rows of the table without missing values."""
    matrix: Matrix
    """(n, m)."""
    usual: float | None
    """Median distance of a row to the nearest other one; None of a single row."""

    @classmethod
    def of(cls, rows: ModelRows, table: pa.Table) -> Self | None:
        """None where no row is without missing values."""
        matrix = rows.model.preparation.matrix(rows.model.preparation.raw(table))
        numbers = np.flatnonzero(np.isfinite(matrix).all(axis=1))
        if not len(numbers):
            return None
        matrix = np.ascontiguousarray(matrix[numbers])
        some = matrix[np.linspace(0, len(matrix) - 1, min(len(matrix), COMPARED)).astype(np.intp)]
        usual = float(np.median(neighbours(some, matrix, 2)[1][:, -1])) if len(matrix) > 1 else None
        return cls(rows, numbers, matrix, usual)

    def nearest(self, points: Matrix) -> tuple[Labels, Vector]:
        """Number of the nearest row of the table (n,), and its distance (n,)."""
        places, far = neighbours(self.rows.matrix(points), self.matrix, 1)
        return self.numbers[places[:, 0]], far[:, 0]

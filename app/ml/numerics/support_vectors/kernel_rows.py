"""Rows of a kernel matrix, computed when they are needed: of points, or of a given square."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.sparse_rows import dense, mapped, row_totals, sparse
from app.ml.numerics.kernel_functions.anova_kernel import Anova
from app.ml.numerics.kernel_functions.given_kernel import Given, places
from app.ml.numerics.kernel_functions.kernel_params import Kernel
from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.kernel_functions.polynomial_kernel import Polynomial
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf
from app.ml.numerics.kernel_functions.sigmoid_kernel import Sigmoid
from app.ml.numerics.support_vectors.compiled import kernel_values as compiled

MEBIBYTE = 2**20


@dataclass(frozen=True)
class KernelRows:
    """The kernel matrix of n rows, by row: of points, of which it is never formed, or a given one."""

    kernel: Kernel | Given
    rows: Matrix
    """(n, d), or `SparseRows` of a linear kernel; of a given matrix (n, 1) places in it."""

    @cached_property
    def columns(self) -> Matrix:
        """(d, n) the same; a linear machine of many rows never reads them."""
        return np.ascontiguousarray(self.rows.T)

    @classmethod
    def given(cls, square: Matrix) -> Self:
        """A given matrix (n, n)."""
        return cls(Given(square), places(len(square)))

    @cached_property
    def diagonal(self) -> Vector:
        """(n,) values of the rows with themselves."""
        return (
            row_totals(mapped(self.rows, np.square))
            if sparse(self.rows) is not None
            else self.kernel.diagonal(self.rows)
        )

    def fill(self, place: int, row_values: Vector) -> None:
        """Write the values (n,) of the row at this place with all rows."""
        if (rows := sparse(self.rows)) is not None:
            row_values[:] = rows @ dense(rows[[place]])[0]
            return
        values_to(self.kernel, self.rows[place : place + 1], self.columns, row_values[None])

    def products(self, left: Labels, right: Labels, coef: Vector) -> Vector:
        """(l,) sums Σ K coef of the rows at `left`, over those at `right`, with coef (r,) of these."""
        if isinstance(self.kernel, Linear):
            sums: Vector = self.rows[left] @ (coef @ self.rows[right])
            return sums
        return weighted_sums(self.kernel, self.rows[left], self.columns[:, right], coef[None])[:, 0]

    def take(self, places: Labels) -> Self:
        """The matrix of these rows only."""
        return type(self)(self.kernel, self.rows[places])


def held(rows: KernelRows, mebibytes: float) -> KernelRows:
    """The same matrix, formed once where its values take no more than this; for several programmes of the same rows."""
    if isinstance(rows.kernel, Given) or 8 * len(rows.rows) ** 2 > mebibytes * MEBIBYTE:
        return rows
    return KernelRows.given(kernel_matrix(rows.kernel, rows.rows, rows.columns))


def kernel_matrix(kernel: Kernel | Given, rows: Matrix, columns: Matrix) -> Matrix:
    """(m, n) values for rows (m, d) and points (d, n): each value has the same bits among any others."""
    values = np.empty((len(rows), columns.shape[1]))
    values_to(kernel, rows, columns, values)
    return values


def weighted_sums(kernel: Kernel | Given, rows: Matrix, columns: Matrix, coef: Matrix) -> Matrix:
    """(m, p) sums of the kernel of rows (m, d) with points (d, n), by coefficients (p, n), each row by itself.

    Needs a block of values at a time.
    """
    columns, sums = np.ascontiguousarray(columns), np.empty((len(rows), len(coef)))
    step = max(1, BLOCK // max(1, columns.shape[1]))
    for start in range(0, len(rows), step):
        values = kernel_matrix(kernel, np.ascontiguousarray(rows[start : start + step]), columns)
        for place, row_coef in enumerate(coef):
            np.vecdot(values, row_coef, out=sums[start : start + step, place])
    return sums


BLOCK = 2**16
"""Values of a kernel held at a time while they are added up."""


def values_to(kernel: Kernel | Given, rows: Matrix, columns: Matrix, values: Matrix) -> None:
    """`kernel_matrix`, written to an array that is there."""
    kind, gamma, coef0, degree = compiled.LINEAR, 1.0, 0.0, 1
    match kernel:
        case Given():
            values[:] = kernel.matrix(rows, columns.T)
            return
        case Polynomial():
            kind, gamma, coef0, degree = compiled.POLYNOMIAL, kernel.gamma, kernel.coef0, kernel.degree
        case Rbf():
            kind, gamma = compiled.RBF, float(kernel.gamma[0])
        case Sigmoid():
            kind, gamma, coef0 = compiled.SIGMOID, kernel.gamma, kernel.coef0
        case Anova():
            kind, gamma, degree = compiled.ANOVA, kernel.gamma, kernel.degree
    compiled.kernel_values(rows, columns, kind, gamma, coef0, degree, values)

"""Rows of which few numbers are not 0, as counts of words: what `Data.x` is for algorithms that accept `SPARSE`.

It has of an array what such algorithms use: its shape, its length, some of its rows, and products with dense arrays on
either side. Each row of a product with a dense matrix on the right has the bits that it has alone. scipy's class has no
length, and to derive from it would load scipy.sparse into every process.
"""

from collections.abc import Callable
from typing import Any, Self, cast

import numpy as np
import scipy
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class SparseRows:
    """A matrix (n, d) by its compressed rows, the columns of each ascending and different."""

    __slots__ = ("csr",)
    __array_ufunc__ = None  # an array on the left of a product leaves it to `__rmatmul__`

    def __init__(self, csr: Any) -> None:
        """csr: a `scipy.sparse.csr_array` of float64."""
        csr.sort_indices()
        self.csr = csr

    @classmethod
    def of(cls, values: Numbers, rows: NDArray[np.intp], columns: NDArray[np.intp], shape: tuple[int, int]) -> Self:
        """Numbers by their place; those of the same place are added."""
        return cls(scipy.sparse.coo_array((values, (rows, columns)), shape=shape).tocsr())

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.csr.shape
        return int(n), int(d)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> "SparseRows":
        """These rows, by their numbers, a mask or a slice."""
        return SparseRows(self.csr[rows])

    def __matmul__(self, dense: Numbers) -> Numbers:
        return np.asarray(self.csr @ dense)

    def __rmatmul__(self, dense: Numbers) -> Numbers:
        return np.asarray((self.csr.T @ dense.T).T)

    @property
    def T(self) -> "SparseColumns":  # noqa: N802  as of an array
        return SparseColumns(self)

    def map(self, function: Callable[[Numbers], Numbers]) -> "SparseRows":
        """The same with this function of the numbers that are not 0; it maps 0 to 0."""
        csr = self.csr
        return SparseRows(scipy.sparse.csr_array((function(csr.data), csr.indices, csr.indptr), shape=csr.shape))

    def row_numbers(self) -> NDArray[np.intp]:
        """(m,) row of each number that is not 0."""
        return np.repeat(np.arange(len(self)), np.diff(self.csr.indptr))

    def row_sums(self, values: Numbers) -> Numbers:
        """(n,) sums of values (m,), one for each number that is not 0, by rows."""
        return np.bincount(self.row_numbers(), values, len(self)).astype(np.float64, copy=False)

    def setflags(self, *, write: bool) -> None:
        for array in (self.csr.data, self.csr.indices, self.csr.indptr):
            array.setflags(write=write)


class SparseColumns:
    """The transpose of rows, for products with dense arrays on the right."""

    __slots__ = ("rows",)

    def __init__(self, rows: SparseRows) -> None:
        self.rows = rows

    def __matmul__(self, dense: Numbers) -> Numbers:
        return np.asarray(self.rows.csr.T @ dense)


def sparse(x: object) -> SparseRows | None:
    """The same rows, if they are sparse; None: they are an array."""
    return x if isinstance(x, SparseRows) else None


def dense(x: Any) -> Numbers:
    """(n, d) the rows as an array."""
    rows: Numbers = x.csr.toarray() if isinstance(x, SparseRows) else x
    return rows


def mapped(x: Numbers, function: Callable[[Numbers], Numbers]) -> Numbers:
    """The rows, sparse or not, with this function of each number; it maps 0 to 0."""
    return cast("Numbers", x.map(function)) if isinstance(x, SparseRows) else function(x)


def row_totals(x: Numbers) -> Numbers:
    """(n,) sum of each row, sparse or not."""
    return x.row_sums(x.csr.data) if isinstance(x, SparseRows) else np.asarray(x.sum(axis=1))


def columns_where(x: Numbers, condition: Callable[[Numbers], NDArray[np.bool_]]) -> NDArray[np.intp]:
    """Columns with a number of which this is true, ascending; it is false of 0."""
    if isinstance(x, SparseRows):
        return np.unique(x.csr.indices[condition(x.csr.data)]).astype(np.intp)
    return np.flatnonzero(condition(x).any(axis=0))


def beside(front: Numbers, others: "list[SparseRows]") -> SparseRows:
    """The columns of an array (n, p), then those of sparse rows."""
    parts = [*([scipy.sparse.csr_array(front)] if front.shape[1] else []), *(part.csr for part in others)]
    return SparseRows(parts[0] if len(parts) == 1 else scipy.sparse.hstack(parts, format="csr"))


def stacked(parts: "list[SparseRows]") -> SparseRows:
    """The rows of all parts, at least one, one after the other."""
    return parts[0] if len(parts) == 1 else SparseRows(scipy.sparse.vstack([part.csr for part in parts], format="csr"))

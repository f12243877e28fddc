"""Shift, scale and imputed value of the numbers of a matrix, and what they are in the table's own units."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from app.ml.contract.algorithm import Affine, Matrix, Vector
from app.ml.preparation.layout import Layout
from app.ml.preparation.state import PreparationState


@dataclass(frozen=True)
class Scaling:
    """Scaling of the first m columns of a matrix (n, d)."""

    layout: Layout
    learned: PreparationState

    @cached_property
    def offset(self) -> Matrix:
        """(1, m)"""
        return self.learned.offset[None, self.layout.direct]

    @cached_property
    def scale(self) -> Matrix:
        """(1, m)"""
        return self.learned.scale[None, self.layout.direct]

    @cached_property
    def filled(self) -> Matrix:
        """(1, m) what stands for a missing number, scaled."""
        return (self.learned.fill[self.layout.direct] - self.offset) / self.scale

    @cached_property
    def units(self) -> tuple[Vector, Vector]:
        """Offset and scale (d,) of the matrix's columns: a number of the table is there (number - offset) / scale."""
        layout = self.layout
        offset, scale = np.zeros(layout.width), np.ones(layout.width)
        if not layout.keeps_categories:
            offset[: layout.direct.size], scale[: layout.direct.size] = self.offset, self.scale
        return offset, scale

    def affine(self) -> Affine:
        """The matrix's columns from their values in the table's own units."""
        offset, scale = self.units
        wide, width = self.layout.direct, self.layout.width
        matrix, shift = self.layout.basis.affine()
        inputs = scipy.sparse.csr_array(matrix[wide][:, wide])
        indicators = scipy.sparse.eye_array(width - wide.size)
        shift = np.append(shift[wide], np.zeros(width - wide.size))
        columns = scipy.sparse.block_diag([inputs, indicators], "csr")
        return Affine(scipy.sparse.csr_array(columns.multiply(1 / scale[:, None])), (shift - offset) / scale)

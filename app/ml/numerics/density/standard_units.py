"""Columns in units in which their rows have mean 0 and variance 1, whatever the size of their numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, StreamedRows, Vector
from app.ml.contract.streamed_rows import Block
from app.ml.numerics.linear_algebra.solve import EPS, near_one


class Units(NamedTuple):
    """Rows x are centre + scale·u, with u in standard units."""

    centre: Vector
    """(d,)"""
    scale: Vector
    """(d,)"""
    constant: Labels
    """Columns with one value, whose scale is that of the mean variance; 1 where no column varies."""

    @classmethod
    def of(cls, centre: Vector, deviations: Vector, rows: int, *, together: bool) -> Self:
        """deviations: (d,) of so many rows. together: one scale for all columns, so that their mean variance is 1."""
        varies = deviations > 4 * EPS * np.sqrt(rows) * np.abs(centre)
        largest = deviations.max(where=varies, initial=0.0)
        mean = largest * np.sqrt(np.square(deviations / largest).mean()) if largest > 0 else 1.0
        return cls(centre, np.where(varies & (not together), deviations, mean), np.flatnonzero(~varies))

    def standard(self, x: Matrix) -> Matrix:
        """The rows (n, d) in standard units."""
        return self.scaled(x - self.centre)

    def scaled(self, centred: Matrix) -> Matrix:
        """The same of rows less the centre, which are overwritten."""
        centred[:, self.constant] = 0.0
        centred /= self.scale
        return centred


class StandardRows(NamedTuple):
    rows: Matrix
    """(n, d) in standard units."""
    units: Units


def standard_units(x: Matrix, weights: Vector, *, together: bool) -> StandardRows:
    """together: see `Units.of`."""
    shares = weights / weights.sum()
    centre = shares @ x
    centred = x - centre
    near = np.array([near_one(reach) for reach in np.abs(centred).max(axis=0).tolist()])
    deviations = np.sqrt(shares @ np.square(centred * near)) / near
    units = Units.of(centre, deviations, len(x), together=together)
    return StandardRows(units.scaled(centred), units)


def streamed_units(rows: StreamedRows, *, together: bool) -> Units:
    """Units of rows that memory does not hold, by merging the means and mean squares of blocks, in one pass.

    Reference: Chan, Golub & LeVeque (1983), The American Statistician 37:242.
    """
    centre, squares, whole = np.zeros(0), np.zeros(0), 0.0
    for x, weights in rows:
        mass = float(weights.sum())
        mean = weights @ x / mass
        squares_of_block = weights @ np.square(x - mean)
        if not whole:
            centre, squares, whole = mean, squares_of_block, mass
            continue
        gap, total = mean - centre, whole + mass
        squares += squares_of_block + np.square(gap) * (whole * mass / total)
        centre, whole = centre + gap * (mass / total), total
    return Units.of(centre, np.sqrt(squares / whole), rows.rows, together=together)


@dataclass(frozen=True, slots=True)
class StandardBlocks:
    """Blocks of rows in standard units."""

    rows: StreamedRows
    units: Units

    def __iter__(self) -> Iterator[Block]:
        return (Block(self.units.standard(x), weights) for x, weights in self.rows)

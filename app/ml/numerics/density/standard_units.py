"""Columns in units in which their rows have mean 0 and variance 1, whatever the size of their numbers."""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.linear_algebra.solve import EPS, near_one


class StandardUnits(NamedTuple):
    """Rows x are centre + scale·rows."""

    rows: Matrix
    """(n, d)"""
    centre: Vector
    """(d,)"""
    scale: Vector
    """(d,)"""
    constant: Labels
    """Columns with one value, whose scale is that of the mean variance; 1 where no column varies."""


def standard_units(x: Matrix, weights: Vector, *, together: bool) -> StandardUnits:
    """together: one scale for all columns, so that their mean variance is 1."""
    shares = weights / weights.sum()
    centre = shares @ x
    centred = x - centre
    units = np.array([near_one(reach) for reach in np.abs(centred).max(axis=0).tolist()])
    deviations = np.sqrt(shares @ np.square(centred * units)) / units
    varies = deviations > 4 * EPS * np.sqrt(len(x)) * np.abs(centre)
    largest = deviations.max(where=varies, initial=0.0)
    mean = largest * np.sqrt(np.square(deviations / largest).mean()) if largest > 0 else 1.0
    scale = np.where(varies & (not together), deviations, mean)
    return StandardUnits(np.where(varies, centred, 0.0) / scale, centre, scale, np.flatnonzero(~varies))

"""Each column of fitted densities by itself: mean and variance in every class, or the shares of its bins."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, ColumnUnits, Matrix, Vector
from app.ml.numerics.density.nonparametric import Histograms, Kernels
from app.ml.numerics.density.normal import Normals
from app.ml.numerics.linear_models.coefficient_errors import as_json

LISTED = 100_000
"""Numbers of a summary; one of more is null."""


class Moments(NamedTuple):
    """Moments of d columns in k classes."""

    means: Matrix
    """(k, d)"""
    variances: Matrix
    """(k, d); zero in a column of one value."""
    widths: Matrix | None = None
    """(k, d) standard deviations of kernels."""


def column_summaries(density: Normals | Histograms | Kernels, units: ColumnUnits | None) -> JSON:
    """A list of columns, each with the numbers of every class, in the order of the classes.

    units: of the numbers; None: those of the matrix.
    """
    if isinstance(density, Histograms):
        columns = range(len(density.low))
        return None if density.logs.size > LISTED else [{"column": j} | _bins(density, j, units) for j in columns]
    moments = _in_units(normal_moments(density) if isinstance(density, Normals) else kernel_moments(density), units)
    if moments.means.size > LISTED:
        return None
    listed = {name: as_json(part.T) for name, part in moments._asdict().items() if part is not None}
    return [{"column": j} | {name: part[j] for name, part in listed.items()} for j in range(moments.means.shape[1])]


def normal_moments(normals: Normals) -> Moments:
    """A class without rows has the mean of all rows and the variance of the classes together."""
    if normals.turn is None:
        return _of_columns(normals.centre, normals.scale, Moments(normals.means, np.asarray(normals.inner) ** -2.0))
    back = np.linalg.pinv(normals.turn)  # (r, d): z · back, within the space that the rows span
    if normals.inner is None:
        variances = np.broadcast_to(np.square(back).sum(axis=0), (len(normals.means), back.shape[1]))
    else:
        variances = np.array([np.square(np.linalg.solve(inner, back)).sum(axis=0) for inner in normals.inner])
    return _of_columns(normals.centre, normals.scale, Moments(normals.means @ back, variances))


def class_covariances(normals: Normals, units: ColumnUnits | None) -> JSON:
    """The covariance (d, d) of each class, or the one of all classes; None: columns are independent, or too many.

    units: of the numbers; None: those of the matrix.
    """
    if normals.turn is None or len(normals.means) * len(normals.scale) ** 2 > LISTED:
        return None
    back = np.linalg.pinv(normals.turn)
    inner = np.eye(len(back))[None] if normals.inner is None else normals.inner
    width = np.where(np.isfinite(normals.scale), normals.scale, 0.0) * (1.0 if units is None else units.scale)
    factors = [np.linalg.solve(triangle, back) * width for triangle in inner]
    covariances = [as_json(factor.T @ factor) for factor in factors]
    return covariances[0] if normals.inner is None else covariances


def kernel_moments(kernels: Kernels) -> Moments:
    """NaN in a class without rows."""
    means, variances = np.full((2, *kernels.inverse.shape), np.nan)
    for c, (begin, end) in enumerate(zip(np.append(0, kernels.ends[:-1]), kernels.ends, strict=True)):
        if end > begin:
            rows, shares = kernels.rows[begin:end], np.exp(kernels.logs[begin:end])
            means[c] = shares @ rows
            variances[c] = shares @ np.square(rows - means[c]) + kernels.inverse[c] ** -2.0
    return _of_columns(kernels.centre, kernels.scale, Moments(means, variances, 1 / kernels.inverse))


def bin_shares(histograms: Histograms, column: int) -> tuple[Vector, NDArray[np.float64]]:
    """Edges (b + 1,) of the bins of a column, and the share (k, b) of each class in them; one bin of a constant."""
    low, width, logs = float(histograms.low[column]), float(histograms.width[column]), histograms.logs[:, column]
    if np.isinf(width):
        return np.array([low, low]), np.ones((len(logs), 1))
    return low + width * np.arange(logs.shape[1] + 1), np.exp(logs + np.log(width))


def _bins(histograms: Histograms, column: int, units: ColumnUnits | None) -> dict[str, JSON]:
    edges, shares = bin_shares(histograms, column)
    edges_in_units = edges if units is None else units.offset[column] + units.scale[column] * edges
    return {"edges": as_json(edges_in_units), "shares": shares.tolist()}


def _of_columns(centre: Vector, scale: Vector, standard: Moments) -> Moments:
    """From columns less their centre and over their scale, which is infinite where a column has one value."""
    return _in_units(standard, ColumnUnits(centre, np.where(np.isfinite(scale), scale, 0.0)))


def _in_units(moments: Moments, units: ColumnUnits | None) -> Moments:
    if units is None:
        return moments
    with np.errstate(over="ignore"):  # what is not finite is null
        widths = None if moments.widths is None else units.widths(moments.widths)
        return Moments(units.values(moments.means), units.widths(units.widths(moments.variances)), widths)

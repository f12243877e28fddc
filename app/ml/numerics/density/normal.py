"""Normal densities of classes, also where the rows leave a variance at zero.

Everything happens in the space that all rows together span, with coordinates in which their covariance is the unit
matrix, so that no choice of units plays a part. There a variance below `FLOOR` counts as none. A class takes what its
own rows leave undetermined from the pooled covariance of the classes (projected onto those directions); where that is
none either, `FLOOR` stands for it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.numerics.density.class_moments import (
    ClassMeans,
    class_means,
    class_scatters,
    column_scatters,
    pooled_scatter,
)
from app.ml.numerics.linear_algebra.solve import ILL_CONDITIONED
from app.ml.numerics.scaling import standardised

FLOOR = 1e-9
"""The least variance in a direction, as a share of the variance of all rows in it."""
MAX_CENTRE_DEVIATIONS = 1e3
"""A centre no more standard deviations from zero costs three digits at most, where rows are not centred."""
STEEP = 1e3
"""Log odds that a standard deviation makes, at most, for the same reason."""


class Normals(NamedTuple):
    """log p(x | c) = constant[c] − ‖(z − means[c]) · inner[c]‖²/2 with z = ((x − centre)/scale) · turn."""

    centre: Vector
    """(d,)."""
    scale: Vector
    """(d,) standard deviations of all rows; infinite for a constant column."""
    turn: Matrix | None
    """(d, r); None: the columns as they are."""
    means: Matrix
    """(k, r)."""
    inner: NDArray[np.float64] | None
    """(k, r) factors of the columns, or (k, r, r); None: the unit matrix for all classes."""
    constants: Vector
    """(k,)."""


class Poverty(NamedTuple):
    """Parameters that the rows did not determine."""

    constant: int
    """Columns of one value."""
    rank: int
    """Dimensions that all rows span; of as many as there are columns."""
    borrowing: Labels
    """Classes that took the pooled variance somewhere."""
    floored: Labels
    """Classes that took `FLOOR` somewhere."""


def naive(data: Data, shrinkage: float) -> tuple[Normals, Poverty]:
    """Independent columns, each with a variance for each class; a share of it may be the pooled one."""
    moments = class_means(data)
    scatters = column_scatters(data, moments.means)
    scale = _scale(moments, scatters.sum(axis=0) / moments.mass.sum() + moments.between)
    pooled = scatters.sum(axis=0) / moments.mass.sum() / scale**2
    variances_of_classes = scatters / _positive(moments.mass)[:, None] / scale**2
    varying, present = np.isfinite(scale), moments.mass > 0
    variances_of_classes = np.where(
        present[:, None], (1 - shrinkage) * variances_of_classes + shrinkage * pooled, pooled
    )
    lacking = variances_of_classes < FLOOR
    variances = np.where(lacking, pooled, variances_of_classes)
    short = variances < FLOOR
    variances = np.where(varying, np.maximum(variances, FLOOR), 1.0)
    constants = -0.5 * np.log(2 * np.pi * variances[:, varying]).sum(axis=1) - np.log(scale[varying]).sum()
    means = (moments.means - moments.centre) / scale
    poverty = _poverty(scale, int(varying.sum()), present, lacking[:, varying], short[:, varying])
    return Normals(moments.centre, scale, None, means, variances**-0.5, constants), poverty


def shared(data: Data) -> tuple[Normals, Poverty]:
    """One covariance for all classes."""
    moments = class_means(data)
    scatter = pooled_scatter(data, moments.means)
    scale, turn, constant = _whitened(moments, scatter)
    within = _seen_through(turn, scatter / moments.mass.sum(), scale)
    values, vectors = np.linalg.eigh(within)
    short = values < FLOOR
    values = np.maximum(values, FLOOR)
    turn = turn @ (vectors / np.sqrt(values))
    means = (moments.means - moments.centre) / scale @ turn
    constants = np.full(len(means), constant - 0.5 * np.log(values).sum())
    everywhere = np.broadcast_to(short, (len(means), len(short)))
    poverty = _poverty(scale, len(values), moments.mass > 0, np.zeros_like(everywhere), everywhere)
    return Normals(moments.centre, scale, turn, means, None, constants), poverty


def full(data: Data, shrinkage: float) -> tuple[Normals, Poverty]:
    """A covariance for each class; a share of it may be the pooled one."""
    moments = class_means(data)
    scatters = class_scatters(data, moments.means)
    scale, turn, constant = _whitened(moments, scatters.sum(axis=0))
    pooled = _seen_through(turn, scatters.sum(axis=0) / moments.mass.sum(), scale)
    k, r = len(moments.means), turn.shape[1]
    inner, constants = np.empty((k, r, r)), np.empty(k)
    lacking, short = np.zeros((k, r), bool), np.zeros((k, r), bool)
    for c, mass in enumerate(moments.mass):
        covariance = _seen_through(turn, scatters[c] / mass, scale) if mass > 0 else pooled
        values, vectors = np.linalg.eigh((1 - shrinkage) * covariance + shrinkage * pooled)
        lacking[c] = values < FLOOR
        if lacking[c].any():
            empty = vectors[:, lacking[c]] @ vectors[:, lacking[c]].T
            values, vectors = np.linalg.eigh(
                vectors * np.where(lacking[c], 0, values) @ vectors.T + empty @ pooled @ empty
            )
            short[c] = values < FLOOR
        values = np.maximum(values, FLOOR)
        inner[c], constants[c] = vectors / np.sqrt(values), constant - 0.5 * np.log(values).sum()
    means = (moments.means - moments.centre) / scale @ turn
    return Normals(moments.centre, scale, turn, means, inner, constants), _poverty(
        scale, r, moments.mass > 0, lacking, short
    )


def comparable_log_densities(normals: Normals, x: Matrix) -> Matrix:
    """(n, k): log p(x | c) less something of the row's own.

    Where the covariance is shared, and neither its centre nor another class is far, that is the first class's: one
    product less is to be made of many rows.
    """
    if normals.inner is not None or not (np.abs(normals.centre) <= MAX_CENTRE_DEVIATIONS * normals.scale).all():
        return relative_log_densities(normals, x)
    coef, constants = linear_form(normals)
    steep = (coef[:, 1:] - coef[:, :1]).T
    scores = np.zeros((len(constants), len(x)))
    with np.errstate(over="ignore", invalid="ignore"):
        if not (np.abs(steep * normals.scale) <= STEEP).all():
            return relative_log_densities(normals, x)
        np.matmul(steep, x.T, out=scores[1:])
        scores[1:] += (constants[1:] - constants[0])[:, None]
    return scores.T if np.isfinite(scores).all() else relative_log_densities(normals, x)


def relative_log_densities(normals: Normals, x: Matrix) -> Matrix:
    """(n, k): log p(x | c) less `common_log_density`, so that far rows keep the difference between the classes.

    A column is contiguous: what is done with the classes of a row is done to columns.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores = _relative(normals, (x - normals.centre) / normals.scale)
    return scores if np.isfinite(scores).all() else _relative(normals, standardised(x, normals.centre, normals.scale))


def linear_form(normals: Normals) -> tuple[Matrix, Vector]:
    """Coefficients (d, k) and constants (k,) of the relative log densities under a shared covariance."""
    coef, constants = _standard_form(normals)
    coef = coef / normals.scale[:, None]
    return coef, constants - normals.centre @ coef


def _standard_form(normals: Normals) -> tuple[Matrix, Vector]:
    """The same for the standardised columns u = (x − centre)/scale."""
    return np.asarray(normals.turn) @ normals.means.T, normals.constants - (normals.means**2).sum(axis=1) / 2


def _relative(normals: Normals, u: Matrix) -> Matrix:
    if normals.inner is None:
        coef, constants = _standard_form(normals)
        return np.asarray((coef.T @ u.T + constants[:, None]).T)
    z = u if normals.turn is None else u @ normals.turn
    scores = np.empty((len(normals.means), len(u)))
    for c, (mean, inner) in enumerate(zip(normals.means, normals.inner, strict=True)):
        gaps = (z - mean) * inner if inner.ndim == 1 else (z - mean) @ inner
        scores[c] = normals.constants[c] - 0.5 * np.einsum("ij,ij->i", gaps, gaps)
    return scores.T


def common_log_density(normals: Normals, x: Matrix) -> Vector:
    """(n,): what the densities of all classes have in common, where they share their covariance; else 0."""
    if normals.inner is not None:
        return np.zeros(len(x))
    z = standardised(x, normals.centre, normals.scale) @ np.asarray(normals.turn)
    return np.asarray(-0.5 * np.einsum("ij,ij->i", z, z))


def _scale(means: ClassMeans, variances: Vector) -> Vector:
    deviations = np.sqrt(variances)
    return np.where(deviations > means.noise, deviations, np.inf)


def _whitened(class_means_: ClassMeans, scatter: Matrix) -> tuple[Vector, Matrix, float]:
    """Scale (d,) and turn (d, r) to coordinates in which all rows have unit covariance; log density of the origin."""
    gaps = class_means_.means - class_means_.centre
    total = (scatter + (gaps.T * class_means_.mass) @ gaps) / class_means_.mass.sum()
    scale = _scale(class_means_, total.diagonal())
    values, vectors = np.linalg.eigh(total / scale / scale[:, None])
    significant = values > ILL_CONDITIONED**-2 * values.max(initial=0.0)
    volume = np.log(2 * np.pi * values[significant]).sum() / 2 + np.log(scale[np.isfinite(scale)]).sum()
    return scale, vectors[:, significant] / np.sqrt(values[significant]), -float(volume)


def _seen_through(turn: Matrix, covariance: Matrix, scale: Vector) -> Matrix:
    return np.asarray(turn.T @ (covariance / scale / scale[:, None]) @ turn)


def _positive(mass: Vector) -> Vector:
    return np.where(mass > 0, mass, 1.0)


def _poverty(
    scale: Vector, rank: int, present: NDArray[np.bool_], lacking: NDArray[np.bool_], short: NDArray[np.bool_]
) -> Poverty:
    constant = int(np.isinf(scale).sum())
    return Poverty(
        constant, rank, np.flatnonzero(lacking.any(axis=1) & present), np.flatnonzero(short.any(axis=1) & present)
    )

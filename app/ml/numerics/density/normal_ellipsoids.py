"""Ellipsoids of normal densities: the points at one Mahalanobis distance from the mean, in a few of the columns.

The block of an ellipsoid is the symmetric root of its covariance: row vectors of length 1 times the block lie at
distance 1 from the mean (LION 13.3, where the covariance itself is printed).
"""

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Vector


class Normals(NamedTuple):
    """k normal densities of rows, and their shares."""

    shares: Vector
    """(k,), with sum 1."""
    means: Matrix
    """(k, d)"""
    factors: NDArray[np.float64]
    """(k, d, d) lower Cholesky factors of the covariances, or (k, 1, d) standard deviations."""

    def covariances(self, columns: Labels) -> NDArray[np.float64]:
        """(k, p, p) of these columns."""
        if self.factors.shape[1] < self.means.shape[1]:
            return np.stack([np.diag(np.square(row[0, columns])) for row in self.factors])
        rows = self.factors[:, columns]
        return np.asarray(rows @ rows.transpose(0, 2, 1))


class Ellipsoids(NamedTuple):
    centres: Matrix
    """(k, p)"""
    blocks: NDArray[np.float64]
    """(k, p, p) symmetric; the rows of all unit vectors times the block, from the centre, are the surface."""

    def between(self, other: "Ellipsoids", share: float) -> "Ellipsoids":
        """Those on the way from these, share 0, to the others, share 1."""
        mixed = ((1 - share) * ours + share * theirs for ours, theirs in zip(self, other, strict=True))
        return Ellipsoids(*mixed)

    @property
    def axes(self) -> NDArray[np.float64]:
        """(k, p, p) half axes as rows, the longest first; the largest number of each is positive."""
        values, vectors = np.linalg.eigh(self.blocks)
        largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=1)[:, None], axis=1)
        signed = vectors * np.where(largest < 0, -values[:, None], values[:, None])
        return np.asarray(signed.transpose(0, 2, 1)[:, ::-1])


def of_components(normals: Normals, columns: Labels, scale: Vector, radius: float) -> Ellipsoids:
    """One for each density. scale: (p,) of the columns: a number of the table is scale times that of a row."""
    unit = _unit(scale)
    spread = normals.covariances(columns) * (scale / unit)[:, None] * (scale / unit)
    return Ellipsoids(normals.means[:, columns] * scale, radius * _roots(spread) * unit)


def of_mixture(normals: Normals, columns: Labels, scale: Vector, radius: float) -> Ellipsoids:
    """The only one of the mean and covariance of the whole mixture."""
    mean = normals.shares @ normals.means[:, columns]
    gaps = normals.means[:, columns] - mean
    within = np.einsum("k,kij->ij", normals.shares, normals.covariances(columns))
    unit = _unit(scale)
    spread = (within + (gaps.T * normals.shares) @ gaps) * (scale / unit)[:, None] * (scale / unit)
    return Ellipsoids((mean * scale)[None], radius * _roots(spread[None]) * unit)


def radius_of(probability: float | None, columns: int) -> float:
    """Mahalanobis distance within which rows lie with this probability; None: 1."""
    return 1.0 if probability is None else float(np.sqrt(scipy.special.chdtri(columns, 1 - probability)))


def _unit(scale: Vector) -> float:
    """Unit in which the squares of the scales do not overflow."""
    return float(np.abs(scale).max()) or 1.0


def _roots(covariances: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1))

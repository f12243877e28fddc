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

    @property
    def whole(self) -> tuple[Vector, Matrix]:
        """Mean (d,) and covariance (d, d) of the mixture."""
        mean = self.shares @ self.means
        gaps = self.means - mean
        between = (gaps.T * self.shares) @ gaps
        if self.factors.shape[1] < self.means.shape[1]:
            return mean, between + np.diag(self.shares @ np.square(self.factors[:, 0]))
        weighed = self.factors * np.sqrt(self.shares)[:, None, None]
        rows = weighed.transpose(1, 0, 2).reshape(mean.size, -1)
        return mean, between + rows @ rows.T

    def projected(self, directions: Matrix) -> "Normals":
        """Densities of the coordinates x @ directions, with directions (d, p) of which none is 0."""
        wide = self.factors.shape[1] < self.means.shape[1]
        factors = directions.T * self.factors if wide else directions.T @ self.factors
        return Normals(self.shares, self.means @ directions, factors)

    def part(self, places: Labels) -> "Normals":
        """The mixture of these alone."""
        shares = self.shares[places]
        return Normals(shares / (shares.sum() or 1.0), self.means[places], self.factors[places])


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


def of_groups(normals: Normals, groups: Labels, columns: Labels, scale: Vector, radius: float) -> Ellipsoids:
    """For each density that of the mixture of its group (k,)."""
    ellipsoids = [
        of_mixture(normals.part(np.flatnonzero(groups == g)), columns, scale, radius) for g in np.unique(groups)
    ]
    _, places = np.unique(groups, return_inverse=True)
    return Ellipsoids(*(np.concatenate(parts)[places] for parts in zip(*ellipsoids, strict=True)))


def principal_axes(normals: Normals, most: int) -> tuple[Vector, Matrix]:
    """The mean (d,) of the mixture and its first principal directions (d, p), their largest number positive."""
    mean, covariance = normals.whole
    vectors = np.linalg.eigh(covariance)[1][:, ::-1][:, :most]
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    return mean, np.where(largest < 0, -vectors, vectors)


def radius_of(probability: float | None, columns: int) -> float:
    """Mahalanobis distance within which rows lie with this probability; None: 1."""
    return 1.0 if probability is None else float(np.sqrt(scipy.special.chdtri(columns, 1 - probability)))


def _unit(scale: Vector) -> float:
    """Unit in which the squares of the scales do not overflow."""
    return float(np.abs(scale).max()) or 1.0


def _roots(covariances: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1))

"""Gaussian mixtures fitted by expectation maximisation (EM), in logarithms, with a floor below every variance.

The floor is a constraint of the maximum, not a term that is added afterwards: under Σ ≥ ε I the likeliest covariance
of weighted rows has their eigenvectors, and their eigenvalues raised to ε. A step can therefore not lower the
likelihood, whatever the rows.

References: Dempster, Laird & Rubin (1977), J. R. Stat. Soc. B 39:1; Bishop (2006), Pattern Recognition and Machine
Learning, section 9.2.
"""

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Matrix, Progress, Vector, silent
from app.ml.contract.streamed_rows import Block
from app.ml.numerics.clustering.lloyd import means as means_of
from app.ml.numerics.density.compiled import mixture as compiled

Form = Literal["full", "diagonal", "spherical"]
MIN_LOG_DENSITY = -float(np.finfo(np.float64).max)
"""The log density of rows so far away that it is no float64."""
NEGLIGIBLE = 1e-12
"""A component with less of the rows keeps its mean and covariance."""


class Components(NamedTuple):
    """k normal densities and their shares."""

    shares: Vector
    """(k,), with sum 1."""
    means: Matrix
    """(k, d)"""
    whitening: NDArray[np.float64]
    """(k, d, d) inverses W of the lower Cholesky factors, Σ⁻¹ = Wᵀ W; or (k, 1, d) reciprocal standard deviations."""

    @property
    def full(self) -> bool:
        return bool(self.whitening.shape[1] == self.means.shape[1])

    @property
    def factors(self) -> NDArray[np.float64]:
        """(k, d, d) lower Cholesky factors of the covariances."""
        whole = self.whitening if self.full else np.stack([np.diag(row[0]) for row in self.whitening])
        return _inverses(whole)

    @property
    def deviations(self) -> Matrix:
        """(k, d) standard deviations of the columns."""
        return np.asarray(np.sqrt(np.square(self.factors).sum(axis=2)) if self.full else 1 / self.whitening[:, 0])

    def moved(self, centre: Vector, scale: Vector) -> "Components":
        """The density of centre + scale·u, where this is that of u."""
        return Components(self.shares, centre + scale * self.means, self.whitening / scale)


class Run(NamedTuple):
    """Result of EM from one start."""

    components: Components
    curve: Vector
    """Mean log density of the rows at every step; it never falls."""
    converged: bool


class Options(NamedTuple):
    form: Form
    floor: float
    """Smallest variance in any direction."""
    max_iter: int
    tol: float
    """EM ends when a step raises the mean log density by less."""


class _Moments(NamedTuple):
    total: float
    """Weighted sum of log densities."""
    whole: float
    """Sum of the weights."""
    masses: Vector
    sums: Matrix
    scatters: NDArray[np.float64]


def log_joint(components: Components, x: Matrix) -> Matrix:
    """(n, k): logarithms of share times density; at least MIN_LOG_DENSITY."""
    scores = np.empty((len(x), len(components.shares)))
    compiled.log_joint(np.ascontiguousarray(x), *components[1:], component_constants(components), scores)
    return np.maximum(scores, MIN_LOG_DENSITY, out=scores)


def log_density(joint: Matrix) -> Vector:
    """(n,) logarithms of the density from those of its components (n, k)."""
    most = joint.max(axis=1)
    return np.asarray(np.maximum(most + np.log(np.exp(joint - most[:, None]).sum(axis=1)), MIN_LOG_DENSITY))


def memberships(joint: Matrix) -> Matrix:
    """(n, k) probabilities that a row is of a component; they add up to 1."""
    odds = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def squares(components: Components, x: Matrix, labels: Labels) -> Vector:
    """(n,) squared Mahalanobis distance of each row to the mean of its component."""
    joint = np.zeros((len(x), len(components.shares)))
    compiled.log_joint(np.ascontiguousarray(x), *components[1:], np.zeros(len(components.shares)), joint)
    return np.asarray(-2 * joint[np.arange(len(x)), labels]) + 0.0


def em(x: Matrix, weights: Vector, start: Components, options: Options) -> Run:
    """Steps from `start` on."""
    return em_of_blocks([Block(x, weights)], start, options)


def em_of_blocks(rows: Iterable[Block], start: Components, options: Options, progress: Progress = silent) -> Run:
    """The same for rows in blocks, which each step reads once."""
    components, moments_ = start, _moments(rows, start)
    curve = [moments_.total / moments_.whole]
    while len(curve) <= options.max_iter:
        better = _maximised(moments_, components, options)
        moments_ = _moments(rows, better)
        rise = moments_.total / moments_.whole - curve[-1]
        if rise > 0:  # else no more than rounding
            components = better
            curve.append(moments_.total / moments_.whole)
        if rise <= options.tol:
            return Run(components, np.array(curve), converged=True)
        progress(1 - 1 / len(curve))
    return Run(components, np.array(curve), converged=False)


def _maximised(statistics: _Moments, last: Components, options: Options) -> Components:
    """The likeliest components for these responsibilities."""
    negligible = statistics.masses <= NEGLIGIBLE * statistics.masses.sum()
    masses = np.where(negligible, 1.0, statistics.masses)
    moves = np.where(negligible[:, None], 0.0, statistics.sums / masses[:, None])
    spread = statistics.scatters / masses[:, None, None]
    if options.form == "full":
        spread = spread + np.tril(spread, -1).transpose(0, 2, 1) - moves[:, :, None] * moves[:, None, :]
    else:
        spread = np.maximum(spread - np.square(moves)[:, None], 0.0)
    whitening = whitened(spread, options)
    whitening[negligible] = last.whitening[negligible]
    return Components(statistics.masses / statistics.masses.sum(), last.means + moves, whitening)


def whitened(covariances: NDArray[np.float64], options: Options) -> NDArray[np.float64]:
    """`Components.whitening` of covariances (k, d, d) or variances (k, 1, d), raised to the floor."""
    if options.form == "full":
        return _inverses(_factors(covariances, options.floor))
    if options.form == "spherical":
        covariances = np.broadcast_to(covariances.mean(axis=2, keepdims=True), covariances.shape)
    return np.ascontiguousarray(np.maximum(covariances, options.floor) ** -0.5)


def of_labels(x: Matrix, weights: Vector, labels: Labels, k: int, options: Options) -> Components:
    """The components of clusters: share, mean and covariance of the rows of each label 0 … k-1."""
    masses, centres = np.bincount(labels, weights, k), means_of(x, weights, labels, k)
    spread = [
        covariance(x[labels == c] - centres[c], weights[labels == c] / masses[c], full=options.form == "full")
        for c in range(k)
    ]
    return Components(masses / masses.sum(), centres, whitened(np.stack(spread), options))


def covariance(centred: Matrix, shares: Vector, *, full: bool) -> Matrix:
    """(d, d) covariance of rows less their mean, or (1, d) variances. shares: (n,), with sum 1."""
    weighed = centred * shares[:, None]
    return np.asarray(weighed.T @ centred if full else (weighed * centred).sum(axis=0)[None])


def touching(components: Components, floor: float) -> Labels:
    """Components with a variance at the floor in some direction."""
    if components.full:
        largest = np.linalg.norm(components.whitening, ord=2, axis=(1, 2))
    else:
        largest = components.whitening.max(axis=(1, 2))
    return np.flatnonzero(largest**-2 <= floor * (1 + 1e-6))


def _moments(rows: Iterable[Block], components: Components) -> _Moments:
    k, d = components.means.shape
    masses, sums, scatters = np.zeros(k), np.zeros((k, d)), np.zeros(components.whitening.shape)
    constants, total, whole = component_constants(components), 0.0, 0.0
    for x, weights in rows:
        total += compiled.moments(x, weights, *components[1:], constants, masses, sums, scatters)
        whole += weights.sum()
    return _Moments(total, whole, masses, sums, scatters)


def component_constants(components: Components) -> Vector:
    """(k,) logarithms of share times density at the mean."""
    diagonal = np.diagonal(components.whitening, axis1=1, axis2=2) if components.full else components.whitening[:, 0]
    volume = np.log(diagonal).sum(axis=1) - components.means.shape[1] / 2 * math.log(2 * math.pi)
    with np.errstate(divide="ignore"):  # a component without rows
        return np.asarray(np.log(components.shares) + volume)


def _factors(covariances: NDArray[np.float64], floor: float) -> NDArray[np.float64]:
    """(k, d, d) lower Cholesky factors, after eigenvalues below the floor were raised to it."""
    d = covariances.shape[1]
    try:
        np.linalg.cholesky(covariances - floor * np.eye(d))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariances)
        roots = vectors * np.sqrt(np.maximum(values, floor))[:, None, :]
        triangles = np.asarray(np.linalg.qr(roots.transpose(0, 2, 1), mode="r"))
        signs = np.where(np.diagonal(triangles, axis1=1, axis2=2) < 0, -1.0, 1.0)
        return np.ascontiguousarray((triangles * signs[:, :, None]).transpose(0, 2, 1))
    return np.asarray(np.linalg.cholesky(covariances))


def _inverses(triangles: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k, d, d) inverses of lower triangular matrices."""
    unit = np.eye(triangles.shape[1])
    return np.array(
        [scipy.linalg.solve_triangular(triangle, unit, lower=True, check_finite=False) for triangle in triangles]
    )

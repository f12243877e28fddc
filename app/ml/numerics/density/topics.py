"""Mixtures of multinomial distributions of counts, fitted by expectation maximisation (EM), in logarithms.

Reference: Nigam, McCallum, Thrun & Mitchell (2000), Mach. Learn. 39:103.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.contract.sparse_rows import SparseRows, mapped, row_totals, sparse
from app.ml.numerics.row_blocks import blocks

MIN_PROBABILITY = 1e-300
"""Stands for a probability of 0 in logarithms: a count that a component rules out is no more than unlikely."""
MIN_LOG_DENSITY = -float(np.finfo(np.float64).max)


class Options(NamedTuple):
    alpha: float
    """Added to the count of each column in each component."""
    max_iter: int
    tol: float


class Topics(NamedTuple):
    """k multinomial distributions and their shares."""

    shares: Vector
    """(k,), with sum 1."""
    profiles: Matrix
    """(k, d) probabilities of the columns; each row has sum 1."""


class Run(NamedTuple):
    """Result of EM from one start."""

    topics: Topics
    means: Matrix
    """(k, d) mean counts of the rows of each."""
    curve: Vector
    """Objective at every step, divided by the sum of the weights; it never falls."""
    converged: bool


class _Sums(NamedTuple):
    objective: float
    masses: Vector
    counts: Matrix


def log_joint(topics: Topics, x: Matrix) -> Matrix:
    """(n, k) logarithms of share times probability, without the part that all components have in common."""
    with np.errstate(over="ignore"):
        scores = x @ _logs(topics.profiles).T + _logs(topics.shares)
    return np.asarray(np.maximum(scores, MIN_LOG_DENSITY))


def log_coefficient(x: Matrix) -> Vector:
    """(n,) that part: logarithms of how many orders of the counted things there are."""
    each = row_totals(mapped(x, lambda counts: scipy.special.gammaln(counts + 1)))
    return np.asarray(scipy.special.gammaln(row_totals(x) + 1) - each)


def log_sum(joint: Matrix) -> Vector:
    most = joint.max(axis=1)
    return np.asarray(most + np.log(np.exp(joint - most[:, None]).sum(axis=1)))


def memberships(joint: Matrix) -> Matrix:
    """(n, k) probabilities of the components; they add up to 1."""
    odds = np.exp(joint - joint.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def of_labels(x: Matrix, weights: Vector, labels: Labels, k: int, alpha: float) -> Topics:
    """The components of clusters."""
    if (rows := sparse(x)) is not None:
        sums = SparseRows.of(weights, labels, np.arange(labels.size), (k, labels.size)).csr @ rows.csr
        counts = sums.toarray()
    else:
        counts = np.zeros((k, x.shape[1]))
        np.add.at(counts, labels, x * weights[:, None])
    return _maximised(_Sums(0.0, np.bincount(labels, weights, k).astype(np.float64), counts), alpha)


def em(x: Matrix, weights: Vector, start: Topics, options: Options) -> Run:
    """Steps from `start` until the objective rises by less than `tol` for a row, or `max_iter` of them.

    The objective is the weighted sum of the logarithms of the rows' probabilities, and `alpha` times those of all
    profiles: the logarithm of their Dirichlet prior.
    """
    whole = weights.sum()
    topics, sums = start, _sums(x, weights, start, options.alpha)
    curve = [sums.objective / whole]
    converged = False
    while len(curve) <= options.max_iter and not converged:
        better = _maximised(sums, options.alpha)
        after = _sums(x, weights, better, options.alpha)
        rise = after.objective / whole - curve[-1]
        if rise > 0:  # else no more than rounding
            topics, sums = better, after
            curve.append(after.objective / whole)
        converged = rise <= options.tol
    means = sums.counts / np.where(sums.masses > 0, sums.masses, 1.0)[:, None]
    return Run(topics, means, np.array(curve), converged)


def _sums(x: Matrix, weights: Vector, topics: Topics, alpha: float) -> _Sums:
    k, d = topics.profiles.shape
    total, masses, counts = alpha * _logs(topics.profiles).sum() if alpha else 0.0, np.zeros(k), np.zeros((k, d))
    rows = sparse(x)
    for part in blocks(len(x), k + (d if rows is None else rows.csr.nnz // len(rows))):
        joint = log_joint(topics, x[part])
        total += weights[part] @ log_sum(joint)
        shares = memberships(joint) * weights[part, None]
        masses += shares.sum(axis=0)
        counts += shares.T @ x[part]
    return _Sums(float(total), masses, counts)


def _maximised(sums_: _Sums, alpha: float) -> Topics:
    """The likeliest components; one without any count has even probabilities."""
    counts = sums_.counts + alpha
    totals = counts.sum(axis=1, keepdims=True)
    even = np.full_like(counts, 1 / counts.shape[1])
    profiles = np.divide(counts, totals, out=even, where=totals > 0)
    return Topics(sums_.masses / sums_.masses.sum(), profiles)


def _logs(probabilities: Matrix | Vector) -> Matrix:
    return np.asarray(np.log(np.maximum(probabilities, MIN_PROBABILITY)))

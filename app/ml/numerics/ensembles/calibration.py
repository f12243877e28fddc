r"""Calibration of votes: class probabilities from the shares of votes, by rows that the voters had not seen.

Of T votes let class c have v; with s = v/T its share, and ŝ = (v + ½)/(T + k/2), which is never 0,

    P(c) ∝ exp(a·s) · ŝᵇ,    a, b ≥ 0.

a = 0 and b = 1 are the shares; larger powers mean that a majority is surer than it looks, as that of trees that differ
is, and smaller ones that it is less. As none is negative, the likeliest class remains that of most votes. a and b have
the least mean of minus the log-likelihood, which is convex. There 1 of n + 1 parts of every row counts as of any class,
so that n rows without an error do not make the next one certain.

References: Platt (1999), in: Advances in Large Margin Classifiers: 61; Boström (2008), ICMLA: 121 (of forests, on
out-of-bag rows); Krichevsky & Trofimov (1981), IEEE Trans. Inf. Theory 27:199 (half a vote more).
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_models import softmax

SHARES = 0.0, 1.0
"""Powers that leave the shares, but for half a vote, as they are."""
NONE = np.zeros(0)
"""Powers of votes that nobody has cast."""
ROWS = 20_000
"""Used, at most."""
TOLERANCE = 1e-12


def learned(votes: NDArray[np.floating], voters: NDArray[np.number], targets: Matrix, weights: Vector) -> Vector:
    """(2,) a and b, from the votes (n, k) of so many voters (n,) and the indicators of the classes (n, k);
    of rows without a voter nothing is learned.
    """
    rows = np.flatnonzero(voters)[:: -(-voters.size // ROWS)]
    terms = _terms(votes[rows].astype(np.float64), voters[rows].astype(np.float64))
    targets, weights = targets[rows], weights[rows]
    n, k = targets.shape
    if not n:
        return NONE
    if k == 1:
        return np.array(SHARES)
    truth, parts = (n * targets + 1 / k) / (n + 1), weights / weights.sum()

    def loss(powers: Vector) -> tuple[float, Vector]:
        scores = _scores(terms, powers)
        errors = (softmax.probabilities(scores) - truth) * parts[:, None]
        return float(parts @ softmax.losses(scores, truth)), (terms * errors).sum(axis=(1, 2))

    options = {"ftol": TOLERANCE, "gtol": TOLERANCE}
    result = scipy.optimize.minimize(
        loss, SHARES, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * 2, options=options
    )
    powers: Vector = result.x
    return powers


def probabilities(votes: Matrix, voters: int, powers: Vector) -> Matrix:
    """(n, k) of the classes, by the votes (n, k)."""
    if votes.shape[1] == 1:
        return np.ones(votes.shape)
    return softmax.probabilities(_scores(_terms(votes, np.full(len(votes), voters)), powers))


def _terms(votes: Matrix, voters: NDArray[np.number]) -> NDArray[np.float64]:
    """(2, n, k) terms of the scores, with a and b as their factors."""
    voter_counts = voters[:, None]
    terms: NDArray[np.float64] = np.stack(
        [votes / voter_counts, np.log((votes + 0.5) / (voter_counts + votes.shape[1] / 2))]
    )
    return terms


def _scores(terms: NDArray[np.float64], powers: Vector) -> Matrix:
    scores: Matrix = powers[0] * terms[0] + powers[1] * terms[1]
    return scores

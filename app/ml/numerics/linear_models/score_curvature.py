"""Rough inverse Hessians of a linear softmax with many scores, which quasi-Newton steps start from.

A Hessian has (d + 1)²s² entries for d inputs and s scores, and costs n times as many products; these cost n(d + 1)² and
n(d + 1)²s. What all scores have in common changes no probability: gradients and steps have no part in it.

References: Böhning (1992), Ann. Inst. Statist. Math. 44:197 (one matrix of the inputs for all scores); Nocedal & Wright
(2006), Numerical Optimization, section 7.2.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_models.cross_entropy import CrossEntropy
from app.ml.numerics.optimise.newton import Solve
from app.ml.numerics.row_blocks import summed

FLAT = 1e-8
"""Curvature, as a share of the largest, below which a direction is as good as flat."""


def at_the_start(loss: CrossEntropy, _point: Vector) -> Solve:
    """Times a vector, roughly the inverse Hessian at `loss.start`, where it is a Kronecker product.

    There the probabilities p are the same in all rows: the Hessian is that of the inputs times that of the scores,
    diag(p) − ppᵀ, plus the penalty, here taken as one number. s > 1.
    """
    d, s = loss.x.shape[1], loss.targets.shape[1]

    def part(section: slice) -> tuple[Matrix]:
        products = np.zeros((d, d))
        for rows in loss.blocks(section):
            scaled = loss.x[rows] * np.sqrt(loss.weights[rows])[:, None]
            products += scaled.T @ scaled
        return (products,)

    (products,), sums = summed(part, len(loss.x), d), loss.weights @ loss.x
    share = loss.weights @ loss.targets
    scores = np.diag(share) - np.outer(share, share)
    scores += scores.trace() / (s * s)  # along the constant, which changes nothing
    inputs, v = np.linalg.eigh(loss.about_means(products, sums, 1.0))
    outputs, u = np.linalg.eigh(scores)
    curvature = np.outer(np.maximum(inputs, FLAT * inputs[-1]), outputs) + loss.penalty.mean()

    def solve(point: Vector) -> Vector:
        return np.asarray((v @ (v.T @ loss.unpacked(point) @ u / curvature) @ u.T).ravel(), np.float64)

    return solve


def score_by_score(loss: CrossEntropy, point: Vector) -> Solve:
    """Times a vector, the inverse of the Hessian at `point` without what pairs of scores have in it. s > 1."""
    diagonal = np.arange(loss.x.shape[1] + 1)
    blocks = loss.each_score(point)
    blocks[:, diagonal, diagonal] += loss.penalty
    # The constant of a score, which has no penalty, and directions that are only rounding must not be flat.
    blocks[:, diagonal, diagonal] += (
        FLAT * np.einsum("ijj->i", blocks)[:, None] / len(diagonal) + np.finfo(np.float64).tiny
    )
    factors = [scipy.linalg.cholesky(block, lower=True, check_finite=False) for block in blocks]

    def solve(vector: Vector) -> Vector:
        right = _apart(loss.unpacked(vector)).T
        solved = [scipy.linalg.cho_solve((f, True), b, check_finite=False) for f, b in zip(factors, right, strict=True)]
        return np.asarray(_apart(np.stack(solved, axis=1)).ravel(), np.float64)

    return solve


def _apart(b: Matrix) -> Matrix:
    """Less what all scores have in common."""
    return np.asarray(b - b.mean(axis=1, keepdims=True), np.float64)

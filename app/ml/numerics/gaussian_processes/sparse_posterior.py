"""Sparse Gaussian processes: the posterior that knows the function at m points and is nearest to the exact one.

With LLᵀ = K(Z, Z), A = L⁻¹K(Z, X)N^(−1/2), MMᵀ = I + AAᵀ and c = M⁻¹A N^(−1/2)y the mean is k(x)ᵀL⁻ᵀM⁻ᵀc, and

    log p(y) ≥ −½ (n log 2π + log |N| + log |MMᵀ| + yᵀN⁻¹y − cᵀc) − ½ Σᵢ (k(xᵢ, xᵢ) − q(xᵢ))/Nᵢ

with q the variance that the points explain. It takes n m² operations in blocks of rows.

The points are rows, chosen one after the other where those before leave the most variance: the pivots of a Cholesky
factorisation of the covariance, of at most 20 rows a point that are drawn.

Source: Titsias (2009), AISTATS: 567, equation 9; Burt, Rasmussen & van der Wilk (2020), J. Mach. Learn. Res. 21:131.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.gaussian_processes.covariance_cholesky import Cholesky, covariance_cholesky
from app.ml.numerics.gaussian_processes.function_posterior import BLOCK, FunctionPosterior, packed
from app.ml.numerics.kernel_functions.kernel_function import KernelFunction

DRAWN = 20
"""Rows among which each point is chosen."""
EXPLAINED = 1e-10
"""Share of the largest variance below which rows are as good as known, and noise is taken for this share."""


class SparsePosterior(NamedTuple):
    posterior: FunctionPosterior
    bound: float
    """Lower bound of the log marginal likelihood."""


def inducing_points(kernel: KernelFunction, rows: Matrix, count: int, rng: np.random.Generator) -> Matrix:
    """(m, d) of the rows (n, d): m is `count`, or fewer where fewer determine the function."""
    most = DRAWN * count
    some = rows[np.sort(rng.choice(len(rows), most, replace=False))] if len(rows) > most else rows
    left = kernel.diagonal(some)
    largest, chosen = left.max(), []
    explained = np.empty((min(count, len(some)), len(some)))
    for step, column in enumerate(explained):
        place = int(left.argmax())
        if left[place] <= EXPLAINED * largest:
            break
        chosen.append(place)
        shared = kernel.matrix(some[place : place + 1], some)[0] - explained[:step, place] @ explained[:step]
        column[:] = shared / math.sqrt(left[place])
        left = left - column**2
        left[place] = 0.0
    return some[chosen]


def sparse_posterior(
    kernel: KernelFunction, points: Matrix, rows: Matrix, targets: Vector, noise: Vector
) -> SparsePosterior:
    """points: (m, d). rows: (n, d). targets, noise: (n,) values and variances of their noise."""
    m = len(points)
    noise = np.maximum(noise, EXPLAINED * kernel.diagonal(rows).max())
    outer = covariance_cholesky(kernel, points, np.zeros(m))
    products, projected, unexplained = np.eye(m, order="F"), np.zeros(m), 0.0
    step = max(1, BLOCK // m)
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        root = np.sqrt(noise[block])
        a = outer.half_solve(kernel.matrix(points, rows[block])) / root
        products += a @ a.T
        projected += a @ (targets[block] / root)
        unexplained += float(np.sum(kernel.diagonal(rows[block]) / noise[block]) - np.vdot(a, a))
    inner = Cholesky(np.asfortranarray(scipy.linalg.cholesky(products, lower=True, check_finite=False)), 0.0)
    c = inner.half_solve(projected)
    coef = outer.half_solve(inner.half_solve(c, transposed=True), transposed=True)
    fit = float(np.sum(targets**2 / noise) - c @ c) + max(unexplained, 0.0)
    logs = len(rows) * math.log(2 * math.pi) + float(np.log(noise).sum()) + inner.log_determinant
    return SparsePosterior(FunctionPosterior(points, coef, packed(outer), packed(inner)), -0.5 * (logs + fit))

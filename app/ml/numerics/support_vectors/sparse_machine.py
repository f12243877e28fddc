"""Linear support vector machines of sparse rows, as of texts: the programme of `smo`, without a kernel.

The method of multipliers takes, for a multiplier b that ends as the intercept,

    β ← argmin over the bounds of  ½‖Xᵀβ‖² − zᵀβ + bΣβ + ½σ(Σβ)²,   b ← b + σΣβ

and each minimum is approached by passes of coordinate descent, whose time follows the numbers that are not 0, with b
moved after each of them. Coefficients that stay at a bound are left out until the others are found.

References: Hsieh et al. (2008), ICML: 408; Bertsekas (1982), Constrained Optimization and Lagrange Multiplier Methods.
"""

import math

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.contract.sparse_rows import SparseRows
from app.ml.numerics.support_vectors.compiled.coordinate_steps import coordinate_steps
from app.ml.numerics.support_vectors.smo import Problem, Settings, Solution, balanced, solution_of

SHARE = 0.01
"""σ as a share of the mean squared length of the rows."""
TIGHTER, TIGHTEST = 0.3, 1e-13
"""Factor of the range of slopes to which coefficients are found, where it leaves the gap open; the least range."""
VISITS, PASSES = 200_000_000, 1000
"""Steps of one coefficient after which a search ends, but no sooner than after so many passes: some seconds. `max_iter`
would allow for more than anyone waits for.
"""


def solve_sparse(rows: SparseRows, diagonal: Vector, problem: Problem, settings: Settings) -> Solution:
    """The minimum for rows (n, d), from β = 0, whose sum is 0; the bounds are finite and ε is 0.

    diagonal: (n,) squared lengths of the rows. An iteration is a pass over the rows that are not left out.
    """
    csr, (n, d) = rows.csr, rows.shape
    matrix = csr.data, csr.indices.astype(np.int32, copy=False), csr.indptr.astype(np.int64, copy=False)
    sigma = SHARE * float(diagonal.mean()) or 1.0
    coef, weights, slopes, b = np.zeros(n), np.zeros(d + 1), np.zeros(n), 0.0
    rng, within, most = np.random.default_rng(0), settings.tol, min(settings.max_iter, max(PASSES, VISITS // n))
    active, least, highest = np.arange(n), -math.inf, math.inf
    done = 0
    while True:
        done += 1
        linear, order = problem.linear - b, rng.permutation(active)
        coordinate_steps(*matrix, linear, problem.lower, problem.upper, diagonal, sigma, order, coef, weights, slopes)
        b += sigma * float(weights[d])
        slope, active_coef = slopes[active], coef[active]
        falls, rises = active_coef > problem.lower[active], active_coef < problem.upper[active]
        free = slope[(falls & (slope > 0)) | (rises & (slope < 0))]
        is_active = (falls | (slope <= highest)) & (rises | (slope >= least))
        least, highest = min(0.0, free.min(initial=0.0)), max(0.0, free.max(initial=0.0))
        if highest - least > within and done < most:
            active, least, highest = active[is_active], least or -math.inf, highest or math.inf
            continue
        if active.size == n or done == most:
            weights[:d], weights[d] = rows.T @ coef, coef.sum()
            solution = solution_of(problem, coef, problem.linear - rows @ weights[:d], done)
            if balanced(problem, solution, settings.tol) and solution.converged_to(problem, settings.tol):
                return solution._replace(converged=True)
            if within < TIGHTEST or done == most:
                return solution
            within *= TIGHTER
        active, least, highest = np.arange(n), -math.inf, math.inf

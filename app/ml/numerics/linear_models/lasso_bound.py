"""Least squares with a bound on the sum of absolute coefficients, by the penalty whose coefficients reach it."""

import numpy as np
import scipy

from app.ml.contract.algorithm import Vector
from app.ml.numerics.linear_models.lasso_path import Path, Problem

MIN_PENALTY_SHARE = 1e-9
"""The share of the first penalty below which a bound does not bind."""


def at_bound(
    problem: Problem, penalties: Vector, path: Path, bound: float, *, tol: float, max_iter: int
) -> tuple[Vector, Path, int]:
    """The penalties and their path with one more, whose coefficients have the size of the bound, and its place.

    penalties: (m,) descending; `path` is their path. It is the weakest penalty if none is so large.
    """
    beyond = np.abs(path.coefs).sum(axis=1) > bound
    after = int(beyond.argmax()) if beyond.any() else len(penalties)
    start = path.coefs[after - 1]

    def path_at(penalty: float) -> Path:
        return problem.follow(np.array([penalty]), start, tol, max_iter)

    def excess(penalty: float) -> float:
        return float(np.abs(path_at(penalty).coefs).sum() - bound)

    weak = float(penalties[after]) if beyond.any() else float(penalties[0]) * MIN_PENALTY_SHARE
    if excess(weak) > 0:
        weak = float(scipy.optimize.brentq(excess, weak, float(penalties[after - 1]), xtol=1e-300, rtol=1e-14))
    inserted = (np.insert(of_all, after, of_one[0], axis=0) for of_all, of_one in zip(path, path_at(weak), strict=True))
    return np.insert(penalties, after, weak), Path(*inserted), after

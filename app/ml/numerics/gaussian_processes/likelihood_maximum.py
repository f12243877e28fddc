"""Parameters of a Gaussian process that maximise its marginal likelihood.

L-BFGS within bounds on the logarithms of the parameters, from several starts. The likelihood of many rows takes n³
operations: the starts are compared on some of the rows, and only the best of them is followed with all.

Source: Rasmussen & Williams, Gaussian Processes for Machine Learning, section 5.4; Byrd, Lu, Nocedal & Zhu (1995), SIAM
J. Sci. Comput. 16:1190.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Context, Matrix, Vector
from app.ml.numerics.gaussian_processes.marginal_likelihood import Observations, negative_likelihood

SCREENED = 300
"""Rows on which starts are compared."""
PRECISION = 1e-10
"""Relative change of the likelihood at which a search ends."""


class Maximum(NamedTuple):
    logarithms: Vector
    """(p + 1,) of the parameters of the kernel, then of the variance of the noise."""
    converged: bool
    iterations: int
    curve: list[float]
    """Negative log likelihood after each iteration with all rows."""


class Search(NamedTuple):
    """Starts and limits of a search."""

    starts: Sequence[Vector]
    """Logarithms (p + 1,), of which parameters that are not learned keep theirs."""
    free: Sequence[bool]
    """(p + 1,) true for the parameters that are learned."""
    bounds: Matrix
    """(p + 1, 2) of the logarithms."""
    max_iter: int


def likelihood_maximum(observations: Observations, search: Search, context: Context) -> Maximum:
    """The best of the maxima that the starts lead to."""
    starts = search.starts
    if not any(search.free):
        return Maximum(starts[0], converged=True, iterations=0, curve=[])
    n = len(observations.targets)
    best = Maximum(starts[0], converged=True, iterations=0, curve=[])
    if n > SCREENED or len(starts) > 1:
        some = observations.drawn(SCREENED, context.rng)
        found = [_climb(some, start, search, lambda _: None) for start in starts]
        best = min(found, key=lambda one: one.curve[-1])
    if n > SCREENED or len(starts) == 1:
        best = _climb(
            observations, best.logarithms, search, lambda step: context.progress(min(0.95, step / search.max_iter))
        )
    return best


def _climb(observations: Observations, start: Vector, search: Search, follow: Callable[[int], None]) -> Maximum:
    free, curve = np.array(search.free), list[float]()
    logarithms = start.copy()

    def descent(values: Vector) -> tuple[float, Vector]:
        logarithms[free] = values
        value, gradient = negative_likelihood(observations, logarithms)
        return value, gradient[free]

    def each(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        curve.append(float(intermediate_result.fun))
        follow(len(curve))

    found = scipy.optimize.minimize(
        descent,
        start[free],
        jac=True,
        method="L-BFGS-B",
        bounds=search.bounds[free],
        callback=each,
        options={"maxiter": search.max_iter, "ftol": PRECISION, "gtol": 1e-6 * len(start)},
    )
    logarithms[free] = found.x
    return Maximum(logarithms, bool(found.status == 0), int(found.nit), [*curve, float(found.fun)])

"""The minimum of a cross-entropy, by the method that its size suggests: Newton's, L-BFGS, or steps without a Hessian.

Reference: Byrd et al. (2011), SIAM J. Optim. 21:977.
"""

from typing import Protocol

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.contract.sparse_rows import sparse
from app.ml.numerics.linear_models.cross_entropy import CrossEntropy
from app.ml.numerics.linear_models.score_curvature import at_the_start, score_by_score
from app.ml.numerics.optimise.newton import SLOW, Minimum, lbfgs, newton, quasi_newton

PART, MIN_CLASS_ROWS = 8192, 50
"""Rows to start with, and how many of each class there have to be among them."""
FEW_UNKNOWNS, MAX_SPECTRUM_INPUTS, DEAR = 100, 2000, 0.8
"""Limits for more than two classes: up to the first Newton at once; inputs up to the second have a spectrum that is
soon found. Then a Hessian costs some dozens of steps: it serves while these bring the gradient to the last share."""
PARTIAL = 0.3
"""Share of the gradient that a step may leave for the Hessian of a part of the rows to be used again."""
FIRST_STEPS, ROUGH_STEPS = 4, 44
"""Steps by the curvature at the start, and by that of each score by itself: together they cost about one Hessian."""
NEWTON_UNKNOWNS = 1000
"""Up to here ten Newton steps cost about what some hundred L-BFGS steps do, and end at the minimum more surely."""

SPARSE_NEWTON_UNKNOWNS = 100
"""The same for sparse rows, of which a step of L-BFGS costs far less than of an array, and a Hessian no less."""


class CrossEntropySolver(Protocol):
    """Parameters of the minimisation, as `logistic` has them."""

    @property
    def solver(self) -> str: ...

    @property
    def tol(self) -> float: ...

    @property
    def max_iter(self) -> int: ...

    @property
    def early_stopping(self) -> bool: ...


class Watch(Protocol):
    """Called after every iteration with the point and its value; True stops."""

    @property
    def stopped(self) -> bool: ...

    def __call__(self, point: Vector, value: float, /) -> bool: ...


def minimum(loss: CrossEntropy, start: Vector, watch: Watch, params: CrossEntropySolver, *, warm: bool) -> Minimum:
    """Many scores at once: first by steps that need no Hessian, then, if these do not arrive, as anything else.

    warm: the start is near the minimum already.
    """
    best, (d, s) = Minimum(start, converged=False, iterations=0), (loss.x.shape[1], loss.targets.shape[1])
    arrays = sparse(loss.x) is None
    if params.solver == "auto" and arrays and s > 1 and best.x.size > FEW_UNKNOWNS and d <= MAX_SPECTRUM_INPUTS:
        for steps, curvature in ((FIRST_STEPS, at_the_start), (ROUGH_STEPS, score_by_score)):
            most = min(steps, params.max_iter - best.iterations)
            rough = quasi_newton(loss, curvature(loss, best.x), best.x, tol=params.tol, max_iter=most, watch=watch)
            best = rough._replace(iterations=best.iterations + rough.iterations)
            if best.converged or watch.stopped or best.iterations == params.max_iter:
                return best
    last = _thorough(params, loss, best.x, params.max_iter - best.iterations, watch, warm=warm)
    return last._replace(iterations=best.iterations + last.iterations)


def _thorough(
    params: CrossEntropySolver, loss: CrossEntropy, start: Vector, max_iter: int, watch: Watch, *, warm: bool
) -> Minimum:
    most = NEWTON_UNKNOWNS if sparse(loss.x) is None else SPARSE_NEWTON_UNKNOWNS
    if params.solver == "lbfgs" or (params.solver == "auto" and start.size > most):
        return lbfgs(loss, start, tol=params.tol, max_iter=max_iter, watch=watch)
    few, hessian = len(loss.x) // max(PART, 4 * start.size), loss.hessian
    slow = DEAR if start.size > FEW_UNKNOWNS and loss.targets.shape[1] > 1 else SLOW
    if few >= 4 and not params.early_stopping:
        start, hessian = start if warm else _head_start(loss.every(few), start), loss.every(4).hessian
        slow = PARTIAL
    return newton(loss, hessian, start, tol=params.tol, max_iter=max_iter, watch=watch, slow=slow)


def _head_start(part: CrossEntropy, start: Vector) -> Vector:
    """The minimum of a part of the rows: of many, few show where to look (Byrd et al. 2011)."""
    if (np.minimum(part.targets.sum(axis=0), (1 - part.targets).sum(axis=0)) < MIN_CLASS_ROWS).any():
        return start
    return newton(part, part.hessian, start, tol=1e-2, max_iter=20, watch=lambda _point, _value: False, slow=PARTIAL).x

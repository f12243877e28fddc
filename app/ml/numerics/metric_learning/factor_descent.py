"""The factor L of a metric that minimises a loss, by limited-memory BFGS; whole, or one number for each column."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector

Loss: TypeAlias = Callable[[Matrix], tuple[float, Matrix]]
"""Value and gradient (p, d) at a factor (p, d)."""


class Learned(NamedTuple):
    factor: Matrix
    """(p, d)."""
    losses: list[float]
    """From the start on, one for each step."""
    converged: bool


def descend(
    loss: Loss, start: Matrix, *, diagonal: bool, tol: float, max_iter: int, watch: Callable[[float, float], None]
) -> Learned:
    """Until the loss falls by less than `tol` in a step, of its size at the start where that is above 1.

    diagonal: the start is a square diagonal matrix, and stays one. watch: called with the share of `max_iter` and the
    loss.
    """
    losses = [loss(start)[0]]
    unit = max(1.0, abs(losses[0]))

    def value_and_slope(flat: Vector) -> tuple[float, Vector]:
        value, slope = loss(_factor(flat, start, diagonal=diagonal))
        return value / unit, (slope.diagonal() if diagonal else slope).ravel() / unit

    def after(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        losses.append(float(intermediate_result.fun) * unit)
        watch(min(1.0, (len(losses) - 1) / max_iter), losses[-1])

    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": 20, "ftol": tol, "gtol": 1e-10}
    first = (start.diagonal() if diagonal else start).ravel()
    result = scipy.optimize.minimize(
        value_and_slope, first, jac=True, method="L-BFGS-B", callback=after, options=options
    )
    return Learned(_factor(result.x, start, diagonal=diagonal), losses, bool(result.success))


def _factor(flat: Vector, start: Matrix, *, diagonal: bool) -> Matrix:
    return np.diag(flat) if diagonal else flat.reshape(start.shape)

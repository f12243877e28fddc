"""First learning rate of stochastic gradient descent, from the lengths of the rows and the curvature of the loss."""

import math

import numpy as np

from app.ml.contract.algorithm import Matrix
from app.ml.contract.sparse_rows import mapped, row_totals
from app.ml.numerics.linear_models.losses import Loss

LIMITS = {Loss.SQUARED: 1.0, Loss.LOGISTIC: 4.0, Loss.SOFTMAX: 2.0}
"""One over the curvature: a step of this over ‖x‖² does not overshoot its row."""
SHARE = 0.1
"""The first rate, as a share of the largest sensible one."""


def first_learning_rate(kind: Loss, targets: Matrix, x: Matrix, *, intercept: bool) -> float:
    """targets: (n, s), as the loss takes them. x: (n, d)."""
    with np.errstate(over="ignore"):
        length = float(row_totals(mapped(x, np.square)).mean()) + intercept
    size = float(np.abs(targets - np.median(targets)).mean()) if kind is Loss.ABSOLUTE else 1.0
    return SHARE * LIMITS.get(kind, size or 1.0) / length if 0 < length < math.inf else 1.0

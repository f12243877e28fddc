r"""Sharpness of class scores: the factor below the softmax with which they are probabilities of the largest likelihood.

    P(class | s) = exp(a s_class) / Σⱼ exp(a sⱼ)

minimises the cross-entropy to (N + 1)/(N + k) for the class of a row, which N rows have, and to 1/(N + k) for each
other of k classes: the minimum is finite where the scores separate the classes. The order of a row's classes stays.

References: Guo, Pleiss, Sun & Weinberger (2017), ICML: 1321 (temperature scaling); Platt (1999), in: Advances in Large
Margin Classifiers: 61 (the targets).
"""

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_models.softmax import probabilities
from app.ml.numerics.optimise.newton import newton

TOLERANCE = 1e-12
MAX_ITER = 100
MIN_SHARPNESS = 1e-6
"""Least factor, in standard deviations of the scores: scores that are worse than none hardly count, in their order."""


def sharpness(scores: Matrix, targets: Matrix, weights: Vector) -> float:
    """The factor, above 0. scores: (n, k) finite, k ≥ 2. targets: (n, k) one-hot. weights: (n,) of the rows."""
    n, k = scores.shape
    spread = float(np.std(scores))
    if not spread > 0:
        return 1.0
    unit, shares = scores / spread, weights / weights.sum()
    counts = targets @ (n * shares @ targets)
    wanted = (1 + targets * counts[:, None]) / (counts[:, None] + k)
    right = (wanted * unit).sum(axis=1)

    def loss(point: Vector) -> tuple[float, Vector]:
        scaled = point[0] * unit
        largest = scaled.max(axis=1)
        logs = largest + np.log(np.exp(scaled - largest[:, None]).sum(axis=1))
        slope = (probabilities(scaled.copy()) * unit).sum(axis=1) - right
        return float(shares @ (logs - point[0] * right)), np.array([shares @ slope])

    def hessian(point: Vector) -> Matrix:
        p = probabilities(point[0] * unit)
        variance = (p * unit**2).sum(axis=1) - (p * unit).sum(axis=1) ** 2
        return np.array([[shares @ variance]])

    minimiser = newton(loss, hessian, np.ones(1), tol=TOLERANCE, max_iter=MAX_ITER, watch=lambda *_: False).x
    return max(float(minimiser[0]), MIN_SHARPNESS) / spread

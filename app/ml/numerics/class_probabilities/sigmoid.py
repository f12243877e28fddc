r"""Platt's sigmoid: the probability of a class as a logistic function of a score.

    P(class | s) = 1 / (1 + exp(−(slope·s + intercept)))

minimises the cross-entropy to (N₊ + 1)/(N₊ + 2) for the N₊ rows of the class and to 1/(N₋ + 2) for the N₋ others. These
targets keep the minimum finite where a score separates the classes. With
weights of rows, of mean 1, they count by them. Newton's method, in the standardised score.

References: Platt (1999), in: Advances in Large Margin Classifiers: 61; Lin, Lin & Weng (2007), Machine Learning 68:267.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.optimise.newton import newton

TOLERANCE = 1e-12
MAX_ITER = 100


def sigmoid(scores: Vector, of_class: Vector, weights: Vector) -> Vector:
    """(2,) slope and intercept. scores: (n,) finite. of_class: (n,) 1 for a row of the class, else 0. weights: (n,)."""
    shares = weights / weights.sum()
    targets = smoothed(of_class, shares * shares.size)
    centre = shares @ scores
    spread = np.sqrt(shares @ np.square(scores - centre))
    start = np.array([0.0, scipy.special.logit(shares @ targets)])
    if not spread > 0 or np.ptp(scores) == 0:
        return start
    terms = np.column_stack([(scores - centre) / spread, np.ones(scores.size)])

    def loss(point: Vector) -> tuple[float, Vector]:
        z = terms @ point
        value = np.logaddexp(0.0, z) - targets * z
        return float(shares @ value), terms.T @ (shares * (scipy.special.expit(z) - targets))

    def hessian(point: Vector) -> Matrix:
        p = scipy.special.expit(terms @ point)
        curvature: Matrix = (terms.T * (shares * p * (1 - p))) @ terms
        return curvature

    slope, intercept = newton(loss, hessian, start, tol=TOLERANCE, max_iter=MAX_ITER, watch=lambda *_: False).x
    return np.array([slope / spread, intercept - slope * centre / spread])


def smoothed(of_class: Vector, weights: Vector) -> Vector:
    """Targets (n,) of a row that stands for itself and one of each class beside it. weights: (n,) of mean 1."""
    inside = weights @ of_class
    return np.asarray(np.where(of_class > 0, (inside + 1) / (inside + 2), 1 / (of_class.size - inside + 2)))

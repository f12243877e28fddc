"""Weights of goals from pairs of which a person preferred one (Bradley–Terry): logistic regression on differences.

Of two candidates with goals a and b the first is preferred with probability σ(wᵀ(a − b)). The weights are those of the
highest posterior density under independent normal priors; the posterior is taken as normal, with the curvature there
(Laplace).

References: Bradley & Terry (1952), Biometrika 39:324; MacKay (1992), Neural Computation 4:720, section 2.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.linear_models.softmax import likelihood
from app.ml.numerics.optimise.newton import newton

TOL, MOST_STEPS = 1e-12, 200


class PreferenceWeights(NamedTuple):
    mean: Vector
    """(d,) weight of each goal."""
    factor: Matrix
    """(d, d) lower triangle L: LLᵀ is the inverse covariance of the weights."""

    def errors(self) -> Vector:
        """(d,) standard deviation of each weight."""
        return self.spreads(np.eye(len(self.mean)))

    def spreads(self, differences: Matrix) -> Vector:
        """(n,) standard deviation of wᵀδ for each row δ."""
        spreads: Vector = np.linalg.norm(scipy.linalg.solve_triangular(self.factor, differences.T, lower=True), axis=0)
        return spreads

    def draws(self, normal: Matrix) -> Matrix:
        """(d, k) weights of the posterior from independent standard normal numbers (d, k)."""
        draws: Matrix = self.mean[:, None] + scipy.linalg.solve_triangular(self.factor, normal, lower=True, trans="T")
        return draws


def preference_weights(differences: Matrix, share: Vector, penalty: float) -> PreferenceWeights:
    """Weights of the smallest Σ log(1 + exp(−sᵀw)) + ½·penalty·‖w‖², where each s is a difference in favour.

    differences: (n, d) goals of the first candidate less those of the second, of comparable spreads. share: (n,) 1 if
    the first is preferred, 0 if the second, ½ if they are equally good. penalty: above 0, the inverse variance of the
    prior.
    """
    d, targets = differences.shape[1], share[:, None]

    def loss(w: Vector) -> tuple[float, Vector]:
        terms = likelihood((differences @ w)[:, None], targets)
        slope = differences.T @ terms.slopes[:, 0] + penalty * w
        return float(terms.losses.sum() + 0.5 * penalty * w @ w), slope

    def curvature(w: Vector) -> Matrix:
        p = scipy.special.expit(differences @ w)
        scaled = differences * np.sqrt(p * (1 - p))[:, None]
        return np.asarray(scaled.T @ scaled + penalty * np.eye(d))

    minimum = newton(loss, curvature, np.zeros(d), tol=TOL, max_iter=MOST_STEPS, watch=lambda *_: False)
    return PreferenceWeights(minimum.x, scipy.linalg.cholesky(curvature(minimum.x), lower=True))

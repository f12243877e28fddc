"""Logarithms of the expected improvement and of its probability, exact where the improvement is next to impossible.

With z = (mean − best)/s, normal density φ and distribution Φ, the expected improvement on the best value so far is
s h(z), h(z) = φ(z) + z Φ(z), and its probability is Φ(z). Far from the best value h underflows, and where it does its
derivative does too: the logarithm keeps an order among such points. For z below −1

    log h(z) = log φ(z) + log(1 + z √(π/2) erfcx(−z/√2)),

whose last factor is 1/z² − 3/z⁴ + … below −1,000.

Source: Jones, Schonlau & Welch (1998), J. Glob. Optim. 13:455, equation 15; Ament, Daulton, Eriksson, Balandat & Bakshy
(2023), NeurIPS 36, equation 9.
"""

import math

import numpy as np
import scipy

from app.ml.contract.algorithm import Matrix

SERIES_BELOW = -1e3
"""Standard deviations below the best value from which the series is used: its next term is 1e-12 of it."""
LOG_ROOT = 0.5 * math.log(2 * math.pi)


def log_h(z: Matrix) -> Matrix:
    """Logarithm of φ(z) + z Φ(z), of any shape.

    >>> log_h(np.array([0.0, -40.0])).round(6).tolist()
    [-0.918939, -808.298568]
    """
    near = np.maximum(z, -1.0)
    plain = np.log(np.exp(-0.5 * near**2 - LOG_ROOT) + near * scipy.special.ndtr(near))
    low = np.clip(z, SERIES_BELOW, -1.0)
    middle = np.log1p(low * math.sqrt(math.pi / 2) * scipy.special.erfcx(-low / math.sqrt(2)))
    far = -2 * np.log(-np.minimum(z, SERIES_BELOW)) + np.log1p(-3 / np.minimum(z, SERIES_BELOW) ** 2)
    tail: Matrix = -0.5 * np.minimum(z, -1.0) ** 2 - LOG_ROOT + np.where(z < SERIES_BELOW, far, middle)
    return np.where(z > -1, plain, tail)


def log_expected_improvement(mean: Matrix, deviation: Matrix, best: Matrix) -> Matrix:
    """Logarithm of E max(f − best, 0) of normal f, of shapes that broadcast; −∞ where f is known and no better."""
    with np.errstate(divide="ignore", invalid="ignore"):
        uncertain = np.log(deviation) + log_h((mean - best) / deviation)
        return np.where(deviation > 0, uncertain, np.log(np.maximum(mean - best, 0.0)))


def log_probability_of_improvement(mean: Matrix, deviation: Matrix, best: Matrix) -> Matrix:
    """Logarithm of P(f > best); −∞ where f is known and no better."""
    with np.errstate(divide="ignore", invalid="ignore"):
        uncertain = scipy.special.log_ndtr((mean - best) / deviation)
        log_probability: Matrix = np.where(deviation > 0, uncertain, np.where(mean > best, 0.0, -np.inf))
    return log_probability

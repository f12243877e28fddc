r"""Error of a majority vote: M members that err with probability e each.

Independent members: P(wrong) = Σ_{k > M/2} C(M, k) e^k (1 − e)^{M−k}. Exchangeable members whose errors correlate by ρ:
each row has an error probability of its own, of a beta distribution with mean e and a + b = 1/ρ − 1, so that k is
beta-binomial.

References: Battiti & Brunato, The LION Way, section 11.1; Skellam (1948), J. R. Stat. Soc. B 10:257.
"""

import numpy as np
import scipy

from app.ml.contract.algorithm import Vector


def wrong_and_tied(members: int, error: float, correlation: float = 0.0) -> tuple[float, float]:
    """Probability that more than half of the members err, and that exactly half do.

    >>> [round(wrong_and_tied(m, e)[0], 6) for m, e in [(5, 0.3), (21, 0.3), (11, 0.4), (101, 0.4)]]
    [0.16308, 0.02639, 0.246502, 0.020897]
    """
    half = members // 2
    if error in {0.0, 1.0} or correlation == 1:
        return error, 0.0
    if correlation == 0:
        wrong = float(scipy.special.bdtrc(half, members, error))
        tied = np.exp(_log_binomial(members, np.array([float(half)]), error))[0] if members % 2 == 0 else 0.0
        return wrong, float(tied)
    shares = np.exp(_log_beta_binomial(members, np.arange(half, members + 1.0), error, correlation))
    tied = float(shares[0]) if members % 2 == 0 else 0.0
    return min(1.0, float(shares[1:].sum())), tied


def limit(error: float, correlation: float) -> float:
    """P(wrong) of ever more members: that of rows on which most members err."""
    if correlation == 1 or error in {0.0, 1 / 2, 1.0}:
        return error
    if correlation == 0:
        return float(error > 1 / 2)
    size = 1 / correlation - 1
    return float(scipy.special.betaincc(error * size, (1 - error) * size, 0.5))


def _log_binomial(members: int, k: Vector, error: float) -> Vector:
    log_probability: Vector = _log_choose(members, k) + k * np.log(error) + (members - k) * np.log1p(-error)
    return log_probability


def _log_beta_binomial(members: int, k: Vector, error: float, correlation: float) -> Vector:
    size = 1 / correlation - 1
    a, b = error * size, (1 - error) * size
    whole: Vector = scipy.special.betaln(k + a, members - k + b) - scipy.special.betaln(a, b)
    return _log_choose(members, k) + whole


def _log_choose(members: int, k: Vector) -> Vector:
    log_count: Vector = -np.log1p(members) - scipy.special.betaln(members - k + 1, k + 1)
    return log_count

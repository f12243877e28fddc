r"""Training error of boosting, bounded by the edges γ_t = 1/2 − e_t of its weak learners.

AdaBoost: at most Π 2√(e_t (1 − e_t)) ≤ exp(−2 Σ γ_t²). Majority with a fixed factor α = (1/2 + γ)/(1/2 − γ): at most
(1 − 4γ²)^{T/2}. Boost-by-majority: at most P(k ≤ T/2) for k of T rounds right, binomial with probability 1/2 + γ.

References: Freund & Schapire (1997), J. Comput. Syst. Sci. 55:119, Theorem 6; Freund (1995), Inf. Comput. 121:256.
"""

import math

import scipy

from app.ml.contract.algorithm import Vector


def adaboost_bounds(errors: Vector) -> Vector:
    """(T,) bound of the training error after each round, from the weighted errors (T,) of all rounds."""
    factors: Vector = 2 * (errors * (1 - errors)) ** 0.5
    return factors.cumprod()


def fixed_factor_bound(edge: float, rounds: int) -> float:
    return math.exp(rounds / 2 * math.log1p(-4 * edge**2)) if edge < 1 / 2 else float(rounds == 0)


def boost_by_majority_bound(edge: float, rounds: int) -> float:
    return float(scipy.special.bdtr(rounds // 2, rounds, 1 / 2 + edge))


def sufficient_rounds(rows: int, edge: float) -> int:
    """Fewest rounds T > ln n / (2γ²): they leave no training error (J8).

    >>> sufficient_rounds(30, 1 / 6)
    62
    """
    return math.floor(math.log(rows) / (2 * edge**2)) + 1

r"""Upper bounds of the risk of a classifier, its probability of an error on a new row, each wrong with probability δ.

- `binomial_upper`, of fresh rows: the largest risk under which so few mistakes have probability δ or more.
- `compression_upper`, of a fit that k of its n rows determine: the same of the n − k others, with δ/(n C(n, k)).
- `weights_upper`, of a function f with weights of length A: the least over c = 2ʲ of

      share of rows with y f(x) ≤ A/c, plus 2c √(tr K)/n, plus 3 √(ln(2/δⱼ)/2n).

- `vote_upper`, of a vote of members with mean loss q on unseen rows: 2 sup{p: kl(q‖p) ≤ ln(2√n/δ)/n}.

δⱼ = δ/(S(|j| + 1)²) with S = π²/3 − 1 adds up to δ over all j.

References: Clopper & Pearson (1934), Biometrika 26:404; Langford (2005), J. Mach. Learn. Res. 6:273, Theorems 3.3 and
8.1; Mohri, Rostamizadeh & Talwalkar (2018), Foundations of Machine Learning, Theorems 5.8 and 6.12; Maurer (2004),
arXiv:cs/0411099; Lorenzen, Igel & Seldin (2019), Mach. Learn. 108:1503, section 3.
"""

import math

import numpy as np
import scipy

from app.ml.contract.algorithm import Vector

OCTAVES = range(-20, 21)
"""Powers j of 2."""
WHOLE = math.pi**2 / 3 - 1
MAURER = 8
"""Fewest rows of Maurer's inequality."""


def binomial_upper(mistakes: int, rows: int, delta: float) -> float:
    """1 without rows.

    >>> round(binomial_upper(0, 100, 0.05), 6)  # 1 - 0.05 ** (1 / 100)
    0.029513
    """
    if mistakes >= rows:
        return 1.0
    return float(scipy.special.betainccinv(mistakes + 1, rows - mistakes, delta))


def compression_upper(compressed: int, mistakes: int, rows: int, delta: float) -> float:
    """kept: rows that determine the fit. mistakes: among the others of all the rows."""
    others = rows - compressed
    if mistakes >= others:
        return 1.0
    log_delta = math.log(delta) - math.log(rows) + scipy.special.betaln(others + 1, compressed + 1) + math.log(rows + 1)
    if mistakes == 0:
        return -math.expm1(log_delta / others)
    return binomial_upper(mistakes, others, math.exp(log_delta)) if log_delta > math.log(1e-300) else 1.0


def weights_upper(norm: float, trace: float, values: Vector, delta: float) -> float:
    """values: (n,) decision values times ±1. norm, trace: with the constant, as `WeightNorm` has them."""
    n = values.size
    bounds = [
        np.mean(values <= norm / 2.0**j)
        + 2 * 2.0**j * math.sqrt(trace) / n
        + 3 * math.sqrt((math.log(2 * WHOLE / delta) + 2 * math.log(abs(j) + 1)) / (2 * n))
        for j in OCTAVES
    ]
    return float(min(bounds))


def vote_upper(loss: float, fewest_rows: int, most_rows: int, delta: float) -> float:
    """loss: mean loss of the members, each on rows of its own, at least `fewest_rows` and at most `most_rows`."""
    if fewest_rows < MAURER:
        return 2.0
    return 2 * kl_upper(loss, math.log(2 * math.sqrt(most_rows) / delta) / fewest_rows)


def kl_upper(share: float, divergence: float) -> float:
    """Largest p with kl(share‖p) at most the divergence, of two coins.

    >>> round(kl_upper(0.0, math.log(2)), 6), round(kl_upper(0.1, 0.0), 6)
    (0.5, 0.1)
    """
    low, high = share, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _kl(share, middle) <= divergence else (low, middle)
    return low


def _kl(q: float, p: float) -> float:
    return float(scipy.special.rel_entr(q, p) + scipy.special.rel_entr(1 - q, 1 - p))
